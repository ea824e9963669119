"""The compiled kernels. Private: their arguments and names change without notice."""
