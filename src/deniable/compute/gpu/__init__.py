"""The inner loops of `kernels` once more, as whole-array operations on PyTorch tensors.

The same code runs on a GPU ("cuda") and on processors ("cpu"), where it is tested. Nothing here is
imported before somebody asks for a device, and nothing here knows of surveys or estimates.
"""
