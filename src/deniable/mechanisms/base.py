"""The contract of a mechanism: token + cohort + secret + random bytes → bytes, and its ε.

`Mechanism.encode` is a pure function, so that any language can replay it against the vectors. A
report is either packed bits (`BitMechanism`) or one number (`NumberMechanism`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar

from deniable.errors import InputError
from deniable.lazy import Registry
from deniable.mechanisms import prf
from deniable.mechanisms.noise import Noise
from deniable.mechanisms.schemes import DENIABLE_1, Scheme
from deniable.privacy import PrivacyLoss

MAX_COHORTS = 65536

Token = Any
"""What a slot reports of a value: the bytes of a string, an option's text, true or false. None is
no answer. Each mechanism takes tokens of its own type."""
Settings = dict[str, Any]
"""Integers, strings and lists of them: a mechanism or protocol as a published survey holds it."""
Cohort = TypeVar("Cohort", bound="Reducible")


class Reducible(Protocol):
    """A cohort, or an array of them."""

    def __mod__(self, other: int, /) -> Any:
        """The remainder."""


@dataclass(frozen=True)
class Domain:
    """What a piece of noise belongs to. A survey's version is not part of it: a new version must
    not draw new noise for a value that was reported before."""

    survey: str = ""
    question: str = ""
    slot: str = ""
    encoding: bytes = b""
    """Digest of all that decides which bits a value sets. A version that changes it draws new noise
    for every value, and pays for it: if only values whose bits changed did, noise and cost would
    tell which they are."""

    @cached_property
    def parts(self) -> tuple[bytes, bytes, bytes]:
        return self.survey.encode(), self.question.encode(), self.slot.encode()


@dataclass(frozen=True)
class Mechanism(ABC):
    """What a client does to one token.

    A new mechanism is a subclass of `BitMechanism` or `NumberMechanism` with a `kind` of its own,
    made known by `deniable.mechanisms.register`.
    """

    noise: Noise
    domain: Domain = Domain()

    kind: ClassVar[str]
    """Its name in a published survey."""
    question_kind: ClassVar[str] = "string"
    """The kind of question that it answers: string, choice or boolean."""
    protocols: ClassVar[frozenset[str]] = frozenset({"single", "ngrams", "prefixes"})
    """Names of the protocols that it can serve in a survey."""

    # --- what a subclass supplies -----------------------------------------------------------

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of bits (k) of a report."""

    @property
    @abstractmethod
    def rand_size(self) -> int:
        """Random bytes that one `encode` takes."""

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """What a report is counted by: its bits, or the numbers that it can be."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """ε of one report, and of any number of reports of one value."""

    @abstractmethod
    def loss_after(self, reports: int) -> float:
        """ε of this many reports of one value."""

    @abstractmethod
    def encode(self, token: Token, *, cohort: int, secret: bytes, rand: bytes) -> bytes:
        """The report of a token, packed. Run by the client.

        cohort : below `cohorts`; see `own_cohort`
        rand : `rand_size` random bytes, never used again
        """

    @abstractmethod
    def encoding(self) -> Settings:
        """What decides which bits a token sets, the number of cohorts excepted."""

    # --- what follows -----------------------------------------------------------------------

    def noise_id(self, token: Token, cohort: int, secret: bytes) -> str:
        """Name of the permanent noise that a report of this token has. Run by the client.

        Reports with one name together tell no more than ε for ever; the ledger adds them up. All
        reports without permanent noise share the name of their slot.
        """
        return f"{self.domain.question}/{self.domain.slot}"

    def canonical(self) -> Settings:
        """Integers and strings that determine the mechanism, for the published survey."""
        noise = {"flip": self.noise.flip, "p": self.noise.p, "q": self.noise.q}
        return {**self.encoding(), **noise}

    @classmethod
    def from_settings(cls, noise: Noise, settings: Settings) -> Self:
        """The mechanism with this noise whose `canonical` has these other keys."""
        return cls(noise=noise, **settings)

    @property
    def cohorts(self) -> int:
        return 1

    @property
    def scheme(self) -> Scheme:
        """How strings are hashed and how noise is derived."""
        return DENIABLE_1

    @property
    def bound(self) -> int | None:
        """One more than the largest number, where a report is a number; None where it is bits."""
        return None

    @property
    def labels(self) -> tuple[str, ...]:
        """The values that are counted without a list of candidates; none for strings."""
        return ()

    def own_cohort(self, cohort: Cohort) -> Cohort:
        """A client's cohort (or an array of clients' cohorts) reduced to this mechanism's."""
        if self.cohorts == MAX_COHORTS:  # nothing to reduce, and too large a divisor for uint16
            return cohort
        return cohort % self.cohorts  # type: ignore[no-any-return]

    def check_inputs(self, cohort: int, rand: bytes) -> None:
        """Raise InputError unless `encode` can take these."""
        if not 0 <= cohort < self.cohorts:
            raise InputError(f"expected a cohort below {self.cohorts}, got {cohort}")
        if len(rand) != self.rand_size:
            raise InputError(f"expected {self.rand_size} random bytes, got {len(rand)}")

    @cached_property
    def size(self) -> int:
        """Bytes of a packed report."""
        return (self.width + 7) // 8

    @property
    def support(self) -> tuple[float, float]:
        """Probabilities that a report supports a value that the client does not hold, and its own.

        A report of bits supports a value by each bit that the value sets.
        """
        return float(self.noise.p_star), float(self.noise.q_star)

    @property
    def collision_probability(self) -> float:
        """Probability that another value supports a given one too, before any noise."""
        return 0.0

    def variance(self, frequency: float = 0.0) -> float:
        """Variance of a value's estimated frequency from one report, at this frequency of it."""
        p, q = self.support
        collide = self.collision_probability
        supported = p + (q - p) * (collide + frequency * (1 - collide))
        return supported * (1 - supported) / (q - p) ** 2

    def within(self, domain: Domain) -> Self:
        """The same mechanism with its own noise and hashing for this domain."""
        return replace(self, domain=domain)


class StringMechanism(Mechanism):
    """A mechanism that hashes strings: `families` hash functions, `hashes` of them per cohort."""

    @cached_property
    def header(self) -> bytes:
        """Prefixed to every value that is hashed: no two slots hash alike."""
        return prf.digest(prf.fields(b"deniable-1/hash", *self.domain.parts))

    @property
    @abstractmethod
    def hash_layout(self) -> tuple[int, int, int]:
        """How many families of hash functions, hashes per family, and cells that they hash to."""


# Local hashing is imported when a survey has it: most clients never do.
KINDS = Registry[Mechanism](
    "mechanism", lambda cls: cls.kind, {"localhash": "deniable.mechanisms.local_hash"}
)
register = KINDS.register


def from_canonical(data: Settings) -> Mechanism:
    """The mechanism that `Mechanism.canonical` described; every key must be one it knows."""
    settings = dict(data)
    kind = settings.pop("kind", None)
    cls = KINDS[kind]
    try:
        noise = Noise(settings.pop("flip"), settings.pop("p"), settings.pop("q"))
        return cls.from_settings(noise, settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"a published {kind} mechanism cannot be read: {error}") from None
