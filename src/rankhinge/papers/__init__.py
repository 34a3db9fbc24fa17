"""What the papers compare with, kept for fidelity and comparison, apart from the product's own way.

Nothing here is loaded unless it is asked for by its name (``method="greedy"`` for instance).
"""
