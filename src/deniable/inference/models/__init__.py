"""What reports of each category look like: one model per way of reporting."""

from deniable.inference.models.base import Candidates, CategoryModel, model_of, register

__all__ = ["Candidates", "CategoryModel", "model_of", "register"]
