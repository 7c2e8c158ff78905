"""Results that were frozen before the package's structure changed, and the tests that keep them."""
