"""What decode, associate, discover and count have in common: reports, days, executor and output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deniable.cli import options
from deniable.cli.output import finished
from deniable.cli.progress_bars import bars
from deniable.cli.surveys import survey_of
from deniable.errors import InputError

if TYPE_CHECKING:
    from deniable.analysis.source import Reports
    from deniable.compute.backend import Backend
    from deniable.render.view import NoteOptions
    from deniable.results import Result
    from deniable.survey import Survey

    Analyse = Callable[[Reports, Backend], Result]

source_arguments = options.together(options.survey_argument, options.reports_argument)
run_options = options.together(
    options.days_options,
    options.by_option,
    options.executor_option,
    options.output_option,
    options.json_option(),
)


@dataclass(frozen=True, kw_only=True)
class AnalysisRun:
    """What `source_arguments` and `run_options` gave."""

    survey_name: str
    reports: tuple[str, ...]
    since: date | None
    until: date | None
    executor: str
    as_json: bool
    by: Literal["day", "week"] | None = None
    outputs: tuple[Path, ...] = ()

    @cached_property
    def survey(self) -> Survey:
        """The survey, from its file or from the store."""
        return survey_of(self.survey_name, self.reports)

    def perform(
        self, analyse: Analyse, *, strict: bool = False, notes: NoteOptions | None = None
    ) -> None:
        """Analyse the reports, all at once or by period; print and write the result.

        analyse : a verb, of reports and an executor; strict : an error in one period ends them
        all; notes : what is said below a table
        """
        from deniable.analysis import by_period
        from deniable.compute.named import executor_of

        with executor_of(self.executor) as executor:
            with bars():
                if self.by is None:
                    result = analyse(self.chosen_reports(), executor)
                else:
                    result = by_period(
                        self.survey,
                        self.store(),
                        lambda stored: analyse(stored, executor),
                        by=self.by,
                        since=self.since,
                        until=self.until,
                        strict=strict,
                    )
            # Within: the tests of a joint table pass over the evidence again.
            finished(result, self.outputs, self.as_json, self.survey, notes)

    def chosen_reports(self) -> Reports:
        """Return the reports, of the days that were asked for only."""
        from deniable.analysis import Stored

        if self.since or self.until:
            return Stored(self.store(), self.since, self.until)
        return self.reports

    def store(self) -> str:
        """Return the one store that was named: only a store knows on which day a report came."""
        from deniable import store

        if len(self.reports) != 1 or not store.is_url(self.reports[0]):
            raise InputError(
                f"expected one store, which knows days, for --since, --until and --by; got "
                f"{', '.join(self.reports)}"
            )
        return self.reports[0]
