"""The code that runs on a person's device. Standard library only."""

from deniable.client.client import Client
from deniable.client.ledger import Ledger
from deniable.client.secret import load_or_create_secret, load_secret, new_secret

__all__ = ["Client", "Ledger", "load_or_create_secret", "load_secret", "new_secret"]
