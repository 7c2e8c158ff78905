"""Category models: the probabilities of reports, given the category of the client's value."""

from deniable.extras import needs_packages

with needs_packages("deniable.inference.models"):
    from deniable.inference.models.base import Candidates, CategoryModel, model_of, register

__all__ = ["Candidates", "CategoryModel", "model_of", "register"]
