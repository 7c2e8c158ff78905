"""A GPU as a backend: the inner loops of `kernels` as operations on PyTorch tensors.

The same code runs on a GPU ("cuda") and on CPUs ("cpu"), where it is tested. It is imported only
when a device is requested, and does not depend on surveys or estimates.
"""
