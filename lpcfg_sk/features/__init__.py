"""Features of inside and outside trees."""
