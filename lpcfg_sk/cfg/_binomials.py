"""Multinomials over rules as chains of binomials with a margin or a prior."""

import numpy as np


def theta_to_binomials(theta):
    r"""Turn a multinomial into its chain of binomials.

    Parameters
    ----------
    theta : array-like of float, shape (N,)
        Probabilities (or counts: any non-negative numbers).

    Returns
    -------
    stop, go : ndarray of float, shape (N,)
        :math:`b_i = θ_i / t_i` and :math:`c_i = t_{i+1} / t_i` with the tail sums
        :math:`t_i = \sum_{j ≥ i} θ_j`; both, because 1 - b loses the digits of a small
        c. Links after the last positive θ are 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.cfg import theta_to_binomials
    >>> theta_to_binomials(np.array([0.25, 0.75, 0.0]))
    (array([0.25, 1.  , 1.  ]), array([0.75, 0.  , 0.  ]))
    """
    theta = np.asarray(theta, dtype=float)
    bad = ~((theta >= 0) & np.isfinite(theta))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise ValueError(
            "theta_to_binomials takes probabilities or counts, numbers from 0 on; got "
            f"{theta[place]} at position {place}"
        )
    return _split(theta)


def _split(theta):
    """Return the chain of binomials of numbers that are known to be valid."""
    tail = np.cumsum(theta[::-1])[::-1]
    rest = np.append(tail[1:], 0.0)
    positive = tail > 0
    safe = np.where(positive, tail, 1.0)
    return np.where(positive, theta / safe, 1.0), np.where(positive, rest / safe, 0.0)


def binomials_to_theta(stop, go):
    r"""Turn a chain of binomials into its multinomial.

    Parameters
    ----------
    stop, go : array-like of float, shape (N,)
        The chain; all numbers are between 0 and 1.

    Returns
    -------
    theta : ndarray of float, shape (N,)
        :math:`θ_i = b_i \prod_{j<i} c_j`.

    Examples
    --------
    >>> import numpy as np
    >>> from lpcfg_sk.cfg import binomials_to_theta
    >>> binomials_to_theta(np.array([0.25, 0.5, 1.0]), np.array([0.75, 0.5, 0.0]))
    array([0.25 , 0.375, 0.375])
    """
    stop, go = np.asarray(stop, dtype=float), np.asarray(go, dtype=float)
    for name, values in (("stop", stop), ("go", go)):
        bad = ~((values >= 0) & (values <= 1))
        if bad.any():
            place = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"binomials are between 0 and 1, got {name}[{place}] = {values[place]}"
            )
    return _join(stop, go)


def _join(stop, go):
    """Return the multinomial of a chain that is known to be valid."""
    return stop * np.concatenate([[1.0], np.cumprod(go[:-1])])


class BinomialChains:
    """The multinomials of a grammar as chains of binomials with a margin or a prior.

    Parameters
    ----------
    groups : list of ndarray of int
        Rules of each nonterminal, in the order of its chain.
    n_rules : int
        Number of rules.
    gamma : float, default=0.0
        Margin γ: binomials are kept in [γ, 1 - γ].
    pseudo_count : float, default=0.0
        α - 1 of a Dirichlet prior, added to the counts of both events of each link.
    """

    def __init__(self, groups, n_rules, gamma=0.0, pseudo_count=0.0):
        self.groups = groups
        self.n_rules = n_rules
        self.gamma = gamma
        self.pseudo_count = pseudo_count

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
            that no earlier one was taken; within the margin.
        """
        stop, go = np.ones(self.n_rules), np.zeros(self.n_rules)
        for group in self.groups:
            stop[group], go[group] = _split(theta[group])
        return self._truncate(stop, go)

    def join(self, stop, go):
        """Rule probabilities of binomials, the reverse of `split`."""
        theta = np.ones(self.n_rules)
        for group in self.groups:
            theta[group] = _join(stop[group], go[group])
        return theta

    def penalty(self, stop, go):
        r"""Minus the logarithm of the Dirichlet prior, up to a constant (equation 26).

        Parameters
        ----------
        stop, go : ndarray of float, shape (n_rules,)
            The binomials.

        Returns
        -------
        penalty : float
            :math:`-(α - 1) \sum (\log b + \log c)` over all links with two events; 0
            without a pseudo-count.
        """
        if self.pseudo_count == 0:
            return 0.0
        links = np.concatenate([group[:-1] for group in self.groups])
        with np.errstate(divide="ignore"):
            logs = np.log(stop[links]) + np.log(go[links])
        return -self.pseudo_count * float(logs.sum())

    def estimate(self, counts, old):
        """Minimise the log-loss of expected counts over Θ(γ).

        Equation 22: the relative frequency of each binomial, cut to [γ, 1 - γ];
        equation 26: with a pseudo-count, the mode under a Dirichlet prior.

        Parameters
        ----------
        counts : ndarray of float, shape (n_rules,)
            Expected counts of the rules, ψ.
        old : tuple of ndarray
            Binomials that are kept where a link was never reached (0/0).

        Returns
        -------
        stop, go : ndarray of float, shape (n_rules,)
        """
        stop, go = old[0].copy(), old[1].copy()
        for group in self.groups:
            links, own = group[:-1], counts[group]
            later = np.cumsum(own[::-1])[::-1][1:] + self.pseudo_count
            own = own[:-1] + self.pseudo_count
            total = own + later
            seen = total > 0
            stop[links[seen]] = own[seen] / total[seen]
            go[links[seen]] = later[seen] / total[seen]
        return self._truncate(stop, go)

    def _truncate(self, stop, go):
        """Move every binomial into [γ, 1 - γ] in place, the map T(θ, γ) of section 4.1.

        The last link of a chain has one event and is exempt.
        """
        for group in self.groups:
            links = group[:-1]
            low, high = stop[links] < self.gamma, go[links] < self.gamma
            stop[links[low]], go[links[low]] = self.gamma, 1.0 - self.gamma
            stop[links[high]], go[links[high]] = 1.0 - self.gamma, self.gamma
        return stop, go
