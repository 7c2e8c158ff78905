"""The paper's reading: significant grams, pairs above delta, cliques, Bonferroni.

Of a client's r+1 reports only the full string's tests a candidate, and all candidates count the
same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.discovery.ngrams.cliques import Cliques, PartiteGraph, find_cliques
from deniable.discovery.ngrams.gram_pairs import GramAxis, build_graph, pair_threshold
from deniable.discovery.ngrams.grams import assemble
from deniable.discovery.ngrams.state import GramReports, ScoredStrings
from deniable.discovery.shared.run import Account
from deniable.protocols import NGrams
from deniable.protocols.alphabet import PAD
from deniable.results import GramGraph

MOST_CANDIDATES = 200_000
SECONDS = 30.0
DRAWN_NODES, DRAWN_CLIQUES = 60, 40
END = "·"


def read_paper(reports: GramReports, delta: float | None) -> tuple[ScoredStrings, Account]:
    """Return candidates as the paper finds them, tested with Bonferroni over the candidates."""
    run, protocol = reports.run, reports.protocol
    axes = [GramAxis.of(position) for position in reports.positions]
    threshold = pair_threshold(protocol, run.reports) if delta is None else delta
    graph, pairs = build_graph(reports, axes, threshold)
    run.stage(f"pairs above {threshold:.4g}", len(graph.edges), pairs - len(graph.edges))
    cliques = find_cliques(graph, most=MOST_CANDIDATES, seconds=SECONDS)
    run.stage("cliques", len(cliques.nodes), 0, cliques.cut)
    grams = (cliques.nodes - graph.offsets[:-1]).T
    rows = assemble(protocol, [axis.grams[gram] for axis, gram in zip(axes, grams, strict=True)])
    wanted = run.accepted(rows)
    run.candidates = count = int(wanted.sum())
    run.stage("accepted", count, len(rows) - count)
    cutoff = run.alpha / max(count, 1)
    tested = reports.estimate(rows[wanted])
    found = ScoredStrings(
        rows[wanted], tested.p_value, np.full(count, cutoff), cliques.evidence[wanted]
    ).take(tested.detected)
    run.stage("tested on full strings", len(found), count - len(found))
    kept = f"cliques ({cliques.cut}): all above {cliques.complete_above:.4g} are in"
    return found, Account(
        reading="paper",
        correction=f"Bonferroni: each of {count:,} candidates at {run.alpha:g}/{count}",
        detection_threshold=reports.detection_threshold(cutoff),
        mass_at_end=reports.mass_at_end,
        evidence_name="weakest pair's frequency",
        truncation=kept if cliques.cut else "",
        graph=_drawn(protocol, axes, graph, cliques),
    )


def _drawn(
    protocol: NGrams, axes: list[GramAxis], graph: PartiteGraph, cliques: Cliques
) -> GramGraph | None:
    """Return the graph for drawing, if it is small."""
    if sum(graph.sizes) > DRAWN_NODES or len(cliques.nodes) > DRAWN_CLIQUES:
        return None
    labels = tuple(tuple(_text(protocol, row) for row in axis.grams) for axis in axes)
    partition = graph.partition[graph.edges]
    ends = np.stack([partition, graph.edges - graph.offsets[partition]], axis=2)
    edges = tuple((a, b, c, d) for a, b, c, d in ends.reshape(-1, 4).tolist())
    strings = tuple(map(tuple, (cliques.nodes - graph.offsets[:-1]).tolist()))
    return GramGraph(labels, edges, tuple(graph.weight.tolist()), strings)


def _text(protocol: NGrams, row: NDArray[np.uint8]) -> str:
    """Return a gram as text, the end of a string as a middle dot."""
    content = row.tobytes().rstrip(bytes([PAD]))
    return protocol.alphabet.text(content) + END * (len(row) - len(content))
