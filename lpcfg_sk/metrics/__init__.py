"""Scores of trees and of models."""
