"""deniable: learn what a crowd says without learning what anyone said.

Importing this for a client pulls in nothing outside the standard library.
"""

from deniable.client import Client
from deniable.survey import Report, Survey

__version__ = "0.1.0"
__all__ = ["Client", "Report", "Survey", "__version__"]
