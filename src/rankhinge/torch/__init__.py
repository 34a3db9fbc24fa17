"""Ranking losses and training for PyTorch networks."""
