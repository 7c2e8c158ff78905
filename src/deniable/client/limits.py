"""Limits of the device: which surveys a program lets people answer, whatever their authors want.

Everything here depends on the survey only, never on an answer, so that a refusal reveals nothing.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from deniable.errors import InputError, SurveyRefused
from deniable.privacy import NANO, nanonats_down
from deniable.survey.survey import DIGEST_SIZE, Survey


@dataclass(frozen=True)
class SurveyLimits:
    """The most that a client accepts of a survey; a program may choose other limits.

    The defaults accept every survey in the documentation, the examples, the test vectors and the
    paper. `math.inf` removes a limit.

    Parameters
    ----------
    epsilon : float, default 20.0
        Maximum budget in nats: what one person may spend on the survey over all versions.
    groups : float, default 8388608
        Maximum number of groups into which the clear fields divide the clients (2²³). With many
        more groups than clients, the clear fields would identify every client.
    size : float, default 262144
        Maximum size of the published survey in bytes, which bounds the time to read it.
    report_size : float, default 65536
        Maximum size of a report in bytes.
    hashes : float, default 65536
        Maximum number of hashes that a report takes.

    Raises
    ------
    InputError
        If a limit is not a positive number.

    Examples
    --------
    >>> from deniable.survey import example_survey
    >>> SurveyLimits(epsilon=0.5).check(example_survey())
    Traceback (most recent call last):
    deniable.errors.SurveyRefused: this device refuses survey 'example': its budget ε = 1 exceeds...
    """

    epsilon: float = 20.0
    groups: float = 2**23
    size: float = 2**18
    report_size: float = 2**16
    hashes: float = 2**16

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if not isinstance(limit, int | float) or not limit > 0:
                raise InputError(f"the limit {name} must be a number above 0, not {limit!r:.80}")

    def check(self, survey: Survey) -> None:
        """Raise SurveyRefused if the survey exceeds a limit.

        Parameters
        ----------
        survey : Survey
            Survey that the program would let people answer.

        Raises
        ------
        SurveyRefused
            If it exceeds a limit; the message says which one, and how to allow it.
        """
        if reasons := self.exceeded(survey):
            raise SurveyRefused(
                f"this device refuses survey {survey.name!r}: {'; '.join(reasons)}. A program that "
                "accepts it anyway passes other SurveyLimits as limits="
            )

    def exceeded(self, survey: Survey) -> list[str]:
        """Return which limits the survey exceeds, in words; an empty list if none.

        Parameters
        ----------
        survey : Survey
            Survey to check.

        Returns
        -------
        list of str
            One text per limit.
        """
        reasons = []
        if self.epsilon < math.inf and survey.budget > nanonats_down(self.epsilon):
            budget = survey.budget / NANO
            reasons.append(f"its budget ε = {budget:.6g} exceeds ε = {self.epsilon:g}")
        if _more_groups(survey, self.groups):
            reasons.append(
                f"its clear fields divide the clients into more than {self.groups:,} groups, so "
                "that they could tell clients apart"
            )
        hashes = sum(m.hashes for q in survey.questions for m in q.protocol.mechanisms)
        for what, got, most in (
            ("published form has {:,} bytes", len(survey.canonical), self.size),
            ("reports have {:,} bytes", survey.body_size, self.report_size),
            ("reports take {:,} hashes", hashes, self.hashes),
        ):
            if got > most:
                reasons.append(f"its {what.format(got)}, more than {most:,}")
        return reasons


DEFAULT_LIMITS = SurveyLimits()


def _more_groups(survey: Survey, limit: float) -> bool:
    """Return whether the clear fields have more groups; stop multiplying as soon as they do."""
    groups = survey.cohorts
    for question in survey.questions:
        if groups > limit:
            break
        groups *= question.protocol.groups
    return groups > limit


def read_published(
    data: bytes,
    where: str,
    *,
    digest: str | bytes | None = None,
    limits: SurveyLimits = DEFAULT_LIMITS,
) -> Survey:
    """Read a survey that others published, after comparing its size and its digest.

    Nothing is parsed before: the bytes may come from anyone.

    Parameters
    ----------
    data : bytes
        Published survey.
    where : str
        Where the bytes come from, for messages.
    digest : str, bytes or None, default None
        Digest of the reviewed survey; None accepts any.
    limits : SurveyLimits, default DEFAULT_LIMITS
        Limits of the device.

    Returns
    -------
    Survey
        The survey.

    Raises
    ------
    InputError
        If the bytes do not have this digest, or are not a survey.
    SurveyRefused
        If there are too many bytes.
    """
    if len(data) > limits.size:
        raise SurveyRefused(
            f"the survey at {where} has {len(data):,} bytes, more than the {limits.size:,} that "
            "this device reads: is the address right? A program that accepts it anyway passes "
            "other SurveyLimits as limits="
        )
    if digest is not None:
        found = hashlib.sha256(data.removesuffix(b"\n")).digest()[:DIGEST_SIZE]
        check_digest(found, digest, where)
    return Survey.from_json(data)


def check_digest(found: bytes, digest: str | bytes, where: str) -> None:
    """Raise InputError unless the digest of a survey, `found`, is the given one."""
    try:
        expected = bytes.fromhex(digest) if isinstance(digest, str) else digest
    except ValueError:
        expected = b""
    if len(expected) != DIGEST_SIZE:
        raise InputError(
            f"the digest must have {2 * DIGEST_SIZE} hexadecimal digits, as deniable check prints "
            f"them, unlike {digest!r:.80}"
        )
    if found != expected:
        raise InputError(
            f"the survey at {where} is not the reviewed one: its digest is {found.hex()}, not "
            f"{expected.hex()}"
        )
