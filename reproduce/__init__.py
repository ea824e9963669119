"""Experiments on published data sets and protocols, one command each."""
