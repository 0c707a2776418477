"""Result tables, displays and drawings."""
