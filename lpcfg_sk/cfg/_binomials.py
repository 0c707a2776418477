"""Margins and priors on the chains of binomials behind a grammar's multinomials.

The rules of a nonterminal, in a fixed order, are a chain of binary choices (the binary
normal form of section 3.2 of Cohen and Smith, 2012): link i stops with rule i or goes
on to the later ones. Nothing is parsed with that form; counts of its events are counts
of rules and their tail sums.
"""

import numpy as np

from lpcfg_sk.cfg._binary_normal_form import binomials_to_theta, theta_to_binomials

__all__ = ["BinomialChains"]


class BinomialChains:
    """The multinomials of a grammar as chains of binomials.

    Parameters
    ----------
    groups : list of ndarray of int
        Rules of each nonterminal, in the order of its chain.
    n_rules : int
        Number of rules.
    """

    def __init__(self, groups, n_rules):
        self.groups = groups
        self.n_rules = n_rules

    def split(self, theta):
        """Binomials of rule probabilities.

        Parameters
        ----------
        theta : ndarray of float, shape (n_rules,)
            Rule probabilities.

        Returns
        -------
        stop, go : ndarray of float, shape (n_rules,)
            Probability of a rule, and of the later rules of its nonterminal, given
            that no earlier one was taken.
        """
        stop, go = np.ones(self.n_rules), np.zeros(self.n_rules)
        for group in self.groups:
            stop[group], go[group] = theta_to_binomials(theta[group])
        return stop, go

    def join(self, stop, go):
        """Rule probabilities of binomials, the reverse of `split`."""
        theta = np.ones(self.n_rules)
        for group in self.groups:
            theta[group] = binomials_to_theta(stop[group], go[group])
        return theta

    def truncate(self, stop, go, gamma):
        """Move every binomial into [γ, 1 - γ], the map T(θ, γ) of section 4.1.

        The last link of a chain has one event and is exempt.
        """
        stop, go = stop.copy(), go.copy()
        for group in self.groups:
            links = group[:-1]
            low, high = stop[links] < gamma, go[links] < gamma
            stop[links[low]], go[links[low]] = gamma, 1.0 - gamma
            stop[links[high]], go[links[high]] = 1.0 - gamma, gamma
        return stop, go

    def estimate(self, counts, old, gamma=0.0, pseudo_count=0.0):
        """Minimise the log-loss of expected counts over Θ(γ).

        Equation 22: the relative frequency of each binomial, cut to [γ, 1 - γ];
        equation 26: with `pseudo_count` α - 1, the mode under a Dirichlet prior.

        Parameters
        ----------
        counts : ndarray of float, shape (n_rules,)
            Expected counts of the rules, ψ.
        old : tuple of ndarray
            Binomials that are kept where a link was never reached (0/0).
        gamma : float, default=0
            Margin.
        pseudo_count : float, default=0
            Added to both events of each link.

        Returns
        -------
        stop, go : ndarray of float, shape (n_rules,)
        """
        stop, go = old[0].copy(), old[1].copy()
        for group in self.groups:
            links, own = group[:-1], counts[group]
            later = np.cumsum(own[::-1])[::-1][1:] + pseudo_count
            own = own[:-1] + pseudo_count
            total = own + later
            seen = total > 0
            stop[links[seen]] = own[seen] / total[seen]
            go[links[seen]] = later[seen] / total[seen]
        return self.truncate(stop, go, gamma) if gamma > 0 else (stop, go)
