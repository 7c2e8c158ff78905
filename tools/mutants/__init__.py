"""Mutation tests: plausible bugs, each of which must make one of its tests fail.

    python -m tools.mutants                  run all (make mutants)
    python -m tools.mutants list             print all
    python -m tools.mutants --only "_spend"  run those whose description contains a text

`mutants.toml` says which functions are mutated, which tests ought to notice, and which mutants are
equivalent to the code. Some mutants are written there. Most are drawn: of all mutants that the
operators make of a function, those with the smallest hashes of seed and name. A change of the
function therefore leaves the draw of its other mutants as it is.
"""
