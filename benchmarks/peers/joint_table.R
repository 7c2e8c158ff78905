# Estimate the joint table of two strings with the functions of a checkout of google/rappor, whose
# own command takes only a string and a boolean.
#
#     RAPPOR_REPO=CHECKOUT/ Rscript joint_table.R FOLDER REPORTS TOP [EM_PROGRAM]
#
# FOLDER holds params.csv, REPORTS, map_x.csv and map_y.csv; joint-results.csv is written to it.
# The TOP most common strings of each variable get a category. EM_PROGRAM is the compiled fast_em.

set.seed(1)  # its marginal decoder draws random numbers
arguments <- commandArgs(TRUE)
folder <- arguments[1]
top <- as.integer(arguments[3])
checkout <- Sys.getenv("RAPPOR_REPO")
for (file in c("association.R", "fast_em.R", "read_input.R")) {
  source(paste0(checkout, "analysis/R/", file))
}
params <- ReadParameterFile(file.path(folder, "params.csv"))
reports <- read.csv(file.path(folder, arguments[2]), colClasses = "character")
cohorts <- as.integer(reports$cohort) + 1

variable <- function(name) {
  bits <- lapply(strsplit(reports[[name]], ""), function(row) rev(as.integer(row)))
  all <- ReadMapFile(file.path(folder, sprintf("map_%s.csv", name)), params)$map
  per_cohort <- lapply(1:params$m, function(m) all[((m - 1) * params$k + 1):(m * params$k), ])
  marginal <- Decode(ComputeCounts(bits, cohorts, params), all, params, quiet = TRUE)$fit
  list(bits = bits, marginal = head(marginal, top),
       map = list(all_cohorts_map = all, map_by_cohort = per_cohort))
}

x <- variable("x")
y <- variable("y")
em <- if (length(arguments) > 3) ConstructFastEM(arguments[4], folder) else EM
joint <- ComputeDistributionEM(list(x$bits, y$bits), list(cohorts, cohorts), list(x$map, y$map),
                               params = params, marginals = list(x$marginal, y$marginal),
                               num_cores = 1, em_iter_func = em)
cells <- as.data.frame(as.table(joint$fit))
names(cells) <- c("x", "y", "proportion")
write.csv(cells, file.path(folder, "joint-results.csv"), row.names = FALSE)
