"""Bigram language models: aggregate Markov and Kneser-Ney."""
