"""A sealed run looked at with other eyes: ball arithmetic, a second path for its bounds, its tasks done anew."""
