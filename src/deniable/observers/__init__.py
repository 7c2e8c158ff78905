"""What observers of the shuffled store learn about one client."""

from deniable.observers.amplification import Amplification, amplified

__all__ = ["Amplification", "amplified"]
