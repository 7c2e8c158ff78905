"""Where reports are kept between the collector and the analyst: one protocol, several stores."""

from deniable.store.base import Compacted, Outcome, Store, Upload, is_url, open

__all__ = ["Compacted", "Outcome", "Store", "Upload", "is_url", "open"]
