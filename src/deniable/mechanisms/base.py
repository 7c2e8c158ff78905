"""Base class of mechanisms: token, cohort, secret and random bytes → report bytes, and their ε.

`Mechanism.encode` is a pure function, so clients in any language can replay it against the test
vectors. A report is either packed bits (`BitMechanism`) or one number (`NumberMechanism`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar

from deniable.errors import InputError
from deniable.lazy import Registry
from deniable.mechanisms import prf
from deniable.mechanisms.noise import ONE, Noise
from deniable.mechanisms.schemes import DENIABLE_1, Scheme
from deniable.privacy import PrivacyLoss, binary_response

MAX_COHORTS = 65536

Token = Any
"""What a slot reports about a value: the bytes of a string, the text of an option, or a boolean.
None means no answer. Each mechanism takes one type of token."""
Settings = dict[str, Any]
"""A mechanism or protocol in a published survey: integers, strings and lists of them, by name."""
Cohort = TypeVar("Cohort", bound="Reducible")


class Reducible(Protocol):
    """A cohort number, or an array of them."""

    def __mod__(self, other: int, /) -> Any:
        """Return the remainder."""


@dataclass(frozen=True)
class Domain:
    """The survey, question and slot that hashing and permanent noise are keyed by.

    The survey's version is not part of it: a new version must not draw new permanent noise for a
    value that was reported before.

    Parameters
    ----------
    survey, question, slot : str
        Names.
    encoding : bytes
        SHA-256 of everything that decides which bits a value sets. A version that changes it draws
        new noise for every value and spends ε for it. Were only those values affected whose bits
        changed, then the noise and the spending would reveal which values they are.
    """

    survey: str = ""
    question: str = ""
    slot: str = ""
    encoding: bytes = b""

    @cached_property
    def parts(self) -> tuple[bytes, bytes, bytes]:
        """The three names in UTF-8."""
        return self.survey.encode(), self.question.encode(), self.slot.encode()


@dataclass(frozen=True)
class Mechanism(ABC):
    """Turns one token into the noisy bytes of a report.

    To add a mechanism, subclass `BitMechanism` or `NumberMechanism`, choose a new `kind`, and
    register the class with `deniable.mechanisms.register`.

    Parameters
    ----------
    noise : Noise
        Probabilities of the noise.
    domain : Domain
        Key of its hashing and permanent noise.
    """

    noise: Noise
    domain: Domain = Domain()

    kind: ClassVar[str]
    """Name of the mechanism in a published survey."""
    question_kind: ClassVar[str] = "string"
    """Kind of question that it can report: string, choice or boolean."""
    protocols: ClassVar[frozenset[str]] = frozenset({"single", "ngrams", "prefixes"})
    """Names of the protocols that it can be used with."""

    # --- defined by each mechanism ----------------------------------------------------------

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of bits of a report (k)."""

    @property
    @abstractmethod
    def rand_size(self) -> int:
        """Number of random bytes that `encode` takes."""

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """Number of counters that reports are counted by: one per bit, or one per number."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """ε per report, and in total for any number of reports of one value."""

    @abstractmethod
    def loss_after(self, reports: int) -> float:
        """Return ε in total for this many reports of one value."""

    @abstractmethod
    def encode(self, token: Token, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """Return the packed report of a token. Runs on the client.

        Parameters
        ----------
        token : object
            What the slot reports about the value; None means no answer.
        cohort : int
            Cohort of the client, below `cohorts`; see `own_cohort`.
        secret : bytes
            Secret of the client, which permanent noise is derived from.
        rand : bytes
            `rand_size` random bytes that are used for nothing else.

        Returns
        -------
        bytes
            The report, `size` bytes.
        """

    @abstractmethod
    def encoding(self) -> Settings:
        """Return the settings that decide which bits a token sets, except the number of cohorts."""

    # --- the same for most mechanisms -------------------------------------------------------

    def noise_id(self, token: Token, cohort: int, secret: bytes) -> str:
        """Return a name for the permanent noise in a report of this token. Runs on the client.

        All reports with the same name together lose at most ε in total; the ledger adds them up.
        Reports without permanent noise have the name of their slot.
        """
        return f"{self.domain.question}/{self.domain.slot}"

    def canonical(self) -> Settings:
        """Return the settings that define the mechanism, for the published survey."""
        noise = {"flip": self.noise.flip, "p": self.noise.p, "q": self.noise.q}
        if self.noise.keep is not None:
            noise["keep"] = self.noise.keep
        return {**self.encoding(), **noise}

    @classmethod
    def from_settings(cls, noise: Noise, settings: Settings) -> Self:
        """Return the mechanism with this noise and the other settings of `canonical`."""
        return cls(noise=noise, **settings)

    @property
    def cohorts(self) -> int:
        """Number of cohorts, which hash differently."""
        return 1

    @property
    def hashes(self) -> int:
        """Number of hashes of a token; with bits, the maximum number of bits that it sets (h)."""
        return 1

    @property
    def scheme(self) -> Scheme:
        """How strings are hashed."""
        return DENIABLE_1

    @property
    def bound(self) -> int | None:
        """Number of possible reports if a report is one number; None if it is bits."""
        return None

    @property
    def ones(self) -> int | None:
        """Number of bits that every report sets; None if reports set different numbers."""
        return None

    @property
    def labels(self) -> tuple[str, ...]:
        """Options that are counted without a list of candidates; empty for strings."""
        return ()

    def lost(self, token: Token) -> str | None:
        """Say what a report of this token does not contain; None if it contains all of it."""
        return None

    def own_cohort(self, cohort: Cohort) -> Cohort:
        """Reduce a cohort of the survey, or an array of them, to a cohort of this mechanism."""
        if self.cohorts == MAX_COHORTS:  # nothing to reduce, and the divisor exceeds uint16
            return cohort
        return cohort % self.cohorts  # type: ignore[no-any-return]

    def check_inputs(self, cohort: int, rand: bytes) -> None:
        """Raise InputError unless `encode` accepts this cohort and these random bytes."""
        if not 0 <= cohort < self.cohorts:
            raise InputError(f"cohort must be from 0 to {self.cohorts - 1}, not {cohort}")
        if len(rand) != self.rand_size:
            raise InputError(f"rand must have {self.rand_size} random bytes, not {len(rand)}")

    @cached_property
    def permanent_prefix(self) -> bytes:
        """First bytes of every message that permanent noise of this slot is derived from."""
        keyed = (*self.domain.parts, self.domain.encoding, self.noise.permanent_thresholds)
        return prf.fields(b"deniable-1/prr", *keyed)

    @cached_property
    def size(self) -> int:
        """Number of bytes of a packed report."""
        return (self.width + 7) // 8

    @property
    def support(self) -> tuple[float, float]:
        """Probabilities that a report supports another value, and the client's own value.

        A report of bits supports a value once for each reported bit that the value sets.
        """
        return float(self.noise.p_star), float(self.noise.q_star)

    @cached_property
    def worst_outcomes(self) -> tuple[tuple[float, float], ...]:
        """Probabilities of disjoint sets of reports under the two values easiest to distinguish.

        Each pair has the probability under the first and under the second value. Every other pair
        of values, in either order, is at least as hard to distinguish. The default is the worst
        case for ε per report: randomised response on one bit.
        """
        return binary_response(self.loss.per_report)

    @property
    def collision_probability(self) -> float:
        """Probability that two different values coincide before any noise."""
        return 0.0

    def variance(self, frequency: float = 0.0, reports: float = 1) -> float:
        """Return the variance of an estimate from one client, for a value of this frequency.

        reports : number of reports of the client, which share its value and its permanent noise
        """
        collide = self.collision_probability
        held = collide + frequency * (1 - collide)

        def of_one(p: float, q: float) -> float:
            supported = p + (q - p) * held
            return supported * (1 - supported) / (q - p) ** 2

        one = of_one(*self.support)
        if reports == 1:
            return one
        lasting = of_one(*self.permanent_support)
        return lasting + (one - lasting) / reports

    @property
    def permanent_support(self) -> tuple[float, float]:
        """The same as `support` for what permanent noise leaves of a value, before fresh noise."""
        return self.noise.flip / ONE, self.noise.kept / ONE

    @property
    def charge(self) -> PrivacyLoss:
        """What the ledger charges: per report, and at most for all reports with the same noise.

        Whatever the number of reports, the sum of the charges must bound what they tell together.
        """
        return self.loss

    def within(self, domain: Domain) -> Self:
        """Return the same mechanism with hashing and permanent noise keyed by this domain."""
        return replace(self, domain=domain)


class StringMechanism(Mechanism):
    """Base class of mechanisms that hash strings."""

    @cached_property
    def header(self) -> bytes:
        """Bytes before every value that is hashed, so that no two slots hash alike."""
        return prf.digest(prf.fields(b"deniable-1/hash", *self.domain.parts))

    @property
    @abstractmethod
    def hash_layout(self) -> tuple[int, int, int]:
        """Number of hash families, of hashes per family, and of cells that each hashes to."""


# These mechanisms are imported on first use: most surveys do not have them.
LATER = {
    "localhash": "deniable.mechanisms.local_hash",
    "localhash-permanent": "deniable.mechanisms.permanent_hash",
    "subset": "deniable.mechanisms.subset",
}
KINDS = Registry[Mechanism]("mechanism", lambda cls: cls.kind, LATER)
register = KINDS.register


def from_canonical(data: Settings) -> Mechanism:
    """Return the mechanism with these settings, as `Mechanism.canonical` writes them."""
    settings = dict(data)
    kind = settings.pop("kind", None)
    cls = KINDS[kind]
    try:
        thresholds = (settings.pop("flip"), settings.pop("p"), settings.pop("q"))
        noise = Noise(*thresholds, keep=settings.pop("keep", None))
        return cls.from_settings(noise, settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"cannot read the published {kind} mechanism: {error}") from None
