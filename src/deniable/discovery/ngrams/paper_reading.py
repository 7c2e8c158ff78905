"""The paper's reading: significant grams, pairs above delta, cliques, Bonferroni.

Of a client's r+1 reports only the full string's tests a candidate, and all candidates count the
same.
"""

from __future__ import annotations

import numpy as np

from deniable.discovery.ngrams.cliques import Cliques, PartiteGraph, find_cliques
from deniable.discovery.ngrams.gram_pairs import GramAxis, build_graph, pair_threshold
from deniable.discovery.ngrams.grams import Rows, assemble, full_design
from deniable.discovery.ngrams.state import Found, GramReports, gram_text
from deniable.discovery.shared.candidate_strings import Accept, accepted
from deniable.inference.marginal.estimate import estimate_marginal
from deniable.results import GramGraph

MOST_CANDIDATES = 200_000
SECONDS = 30.0
DRAWN_NODES, DRAWN_CLIQUES = 60, 40


def read_paper(
    evidence: GramReports, *, accept: Accept, alpha: float, delta: float | None
) -> Found:
    """Candidates as the paper finds them, tested with Bonferroni over the candidates."""
    protocol, log = evidence.protocol, evidence.log
    axes = [GramAxis.of(position) for position in evidence.positions]
    threshold = pair_threshold(protocol, evidence.reports) if delta is None else delta
    with log.stage(f"pairs above {threshold:.4g}") as stage:
        graph, pairs = build_graph(
            protocol, evidence.source, evidence.question, axes, threshold, evidence.executor
        )
        stage.count(len(graph.edges), pairs)
    with log.stage("cliques") as stage:
        cliques = find_cliques(graph, most=MOST_CANDIDATES, seconds=SECONDS)
        stage.count(len(cliques.nodes), len(cliques.nodes), cliques.cut)
    rows = _strings(evidence, axes, graph, cliques)
    with log.stage("accepted") as stage:
        keep = accepted(protocol, rows, accept)
        stage.count(len(keep), len(rows))
    rows, weakest = rows[keep], cliques.evidence[keep]
    level = np.full(len(rows), alpha / max(len(rows), 1))
    with log.stage("tested on full strings") as stage:
        tested = estimate_marginal(evidence.tallies.full, full_design(protocol, rows), alpha=alpha)
        stage.count(int(tested.detected.sum()), len(rows))
    sure = tested.detected
    return Found(
        rows[sure], tested.p_value[sure], weakest[sure], level[sure], "weakest pair's frequency",
        len(rows), f"Bonferroni: each of {len(rows):,} candidates at {alpha:g}/{len(rows)}",
        cliques.cut and f"cliques ({cliques.cut}): all above {cliques.complete_above:.4g} are in",
        float(level[0]) if len(level) else alpha, _drawn(evidence, axes, graph, cliques),
    )  # fmt: skip


def _strings(
    evidence: GramReports, axes: list[GramAxis], graph: PartiteGraph, cliques: Cliques
) -> Rows:
    """Cliques as rows of symbols."""
    local = cliques.nodes - graph.offsets[:-1]
    return assemble(evidence.protocol, [a.grams[local[:, g]] for g, a in enumerate(axes)])


def _drawn(
    evidence: GramReports, axes: list[GramAxis], graph: PartiteGraph, cliques: Cliques
) -> GramGraph | None:
    """The graph for drawing, if it is small."""
    if sum(graph.sizes) > DRAWN_NODES or len(cliques.nodes) > DRAWN_CLIQUES:
        return None
    text = [tuple(gram_text(evidence.protocol, row) for row in axis.grams) for axis in axes]
    first = graph.offsets[:-1]
    part = graph.partition
    edges = tuple(
        (int(part[a]), int(a - first[part[a]]), int(part[b]), int(b - first[part[b]]))
        for a, b in graph.edges.tolist()
    )
    found = tuple(tuple(int(i) for i in row) for row in cliques.nodes - first)
    return GramGraph(tuple(text), edges, tuple(graph.weight.tolist()), found)
