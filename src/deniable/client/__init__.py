"""Client: the code that runs on a person's device. It uses the standard library only.

Modules for sending are imported on first use, so that an answer is ready sooner.
"""

from typing import TYPE_CHECKING

from deniable.client.client import Client
from deniable.client.encoder import encode_report
from deniable.client.ledger import Ledger, Spending
from deniable.client.limits import SurveyLimits
from deniable.client.secret import load_or_create_secret, load_secret, new_secret
from deniable.lazy import lazy_exports

if TYPE_CHECKING:
    from deniable.client.exchange import fetch_survey
    from deniable.client.outbox import Outbox
    from deniable.client.sender import Sender, Sent

__all__ = [
    "Client",
    "Ledger",
    "Outbox",
    "Sender",
    "Sent",
    "Spending",
    "SurveyLimits",
    "encode_report",
    "fetch_survey",
    "load_or_create_secret",
    "load_secret",
    "new_secret",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "deniable.client.exchange": ["fetch_survey"],
        "deniable.client.outbox": ["Outbox"],
        "deniable.client.sender": ["Sender", "Sent"],
    },
)
