"""The linear probe: a multinomial logistic regression on ID image vectors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from outword.base.extras import require
from outword.errors import InputError
from outword.maths.methods.base import Classes
from outword.maths.numerics import Array, blocks, log_sum_exp

STRENGTH = 1000.0  # of 1 to 100,000, near the best log-likelihood of held-out photos, which is flat from here on
MOST_STEPS = 3000  # some heads with outliers take a little over 1000, by how the processor rounds
SMALL = 10**8  # multiplications a step, under which threads of numpy and scipy wait for each other more than they help
MEMORY = 1 << 25  # numbers that L-BFGS may keep of its past steps: 256 MB


def fit_head(
    images: Array, classes: Classes, outliers: Array | None = None, weight: float = 0.1, strength: float = STRENGTH
) -> tuple[Array, Array]:
    """Weights (n_classes, dim) and bias (n_classes,) of the head that fits unit image vectors to their classes.

        min  1/n sum_i -log softmax(W x_i + b)_{c_i} + |W|^2 / (2 C n),   C = 1000

    With outliers, unit rows too, one whose energy tells them from the images as well (see `Loss`); `weight` is that of
    their part of the loss, `strength` the C. Rows follow the sorted classes, of which there must be two at least.
    """
    names, own = np.unique(classes, return_inverse=True)
    if len(names) < 2:
        raise InputError(
            f"a head needs images of at least two classes, got {len(names)}", hint="pass images of another class too"
        )
    outliers = np.zeros((0, images.shape[1])) if outliers is None else outliers
    centre = images.mean(axis=0)
    loss = Loss(images, own, outliers, centre, weight, 1 / (strength * len(images)), len(names))
    weights, bias, _ = loss.parts(_minimise(loss))
    return weights.copy(), bias - weights @ centre


@dataclass(frozen=True)
class Loss:
    """Cross-entropy of the head and logistic loss of its energy, with gradients, in blocks of rows.

        1/n sum_i -log softmax(z_i)_{c_i} + penalty/2 (|W|^2 + a^2)
        + weight/2 (mean over images of log(1 + e^{-phi}) + mean over outliers of log(1 + e^{phi})),

    `z = W (x - centre) + b`, `phi = a (log sum_k e^{z_k} - log K) + c`. The slope is a square, `a = s^2`, or the energy
    of outliers could be made to rise. The centre changes nothing but the number of steps. The sum of b stays 0: a
    constant added to all of b changes neither the softmax nor, with another c, phi. Without outliers the second line, s
    and c are void, and the loss is convex.
    """

    images: Array
    own: Classes
    outliers: Array
    centre: Array
    weight: float
    penalty: float
    n_classes: int

    def start(self) -> Array:
        """All zero, but for phi, which rises with the energy."""
        theta = np.zeros(self.n_classes * (len(self.centre) + 1) + 2)
        theta[-2] = len(self.outliers) > 0
        return theta

    def parts(self, theta: Array) -> tuple[Array, Array, Array]:
        """Views of W (n_classes, dim), b (n_classes,) and the line (s, c)."""
        size = self.n_classes * len(self.centre)
        return theta[:size].reshape(self.n_classes, -1), theta[size:-2], theta[-2:]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """The loss and its gradient."""
        weights, _, line = self.parts(theta)
        gradient = np.zeros_like(theta)
        g_weights, g_bias, g_line = self.parts(gradient)
        g_weights[:], g_line[0] = self.penalty * weights, 2 * self.penalty * line[0] ** 3
        value = self.penalty / 2 * ((weights**2).sum() + line[0] ** 4)
        for rows in blocks(len(self.images), self.n_classes):
            value += self._add(theta, gradient, self.images[rows], self.own[rows])
        for rows in blocks(len(self.outliers), self.n_classes):
            value += self._add(theta, gradient, self.outliers[rows], None)
        g_bias -= g_bias.mean()
        return float(value), gradient

    def _add(self, theta: Array, gradient: Array, rows: Array, own: Classes | None) -> float:
        """The share of some rows in the loss; theirs in the gradient is added to it. Rows of no class are outliers."""
        weights, bias, _ = self.parts(theta)
        g_weights, g_bias, _ = self.parts(gradient)
        x = rows - self.centre
        z = x @ weights.T + bias
        energy = log_sum_exp(z)
        value, by_energy = self._energy_term(theta, gradient, energy, own is not None)
        by_logit = np.exp(z - energy[:, None])
        if own is None:
            by_logit *= by_energy[:, None]
        else:
            at, n = np.arange(len(x)), len(self.images)
            value += (energy - z[at, own]).sum() / n
            by_logit *= (by_energy + 1 / n)[:, None]
            by_logit[at, own] -= 1 / n
        g_weights += by_logit.T @ x
        g_bias += by_logit.sum(axis=0)
        return float(value)

    def _energy_term(self, theta: Array, gradient: Array, energy: Array, inside: bool) -> tuple[float, Array]:
        """The logistic loss of some rows, and its slope by their energies."""
        if not len(self.outliers):
            return 0.0, np.zeros(len(energy))
        s, c = theta[-2:]
        sign, n = (1, len(self.images)) if inside else (-1, len(self.outliers))
        above = energy - np.log(self.n_classes)
        phi = sign * (s**2 * above + c)
        by_phi = -sign * self.weight / (2 * n) * np.exp(-np.logaddexp(0, phi))
        gradient[-2:] += 2 * s * (by_phi @ above), by_phi.sum()
        return float(self.weight / (2 * n) * np.logaddexp(0, -phi).sum()), by_phi * s**2


def _minimise(loss: Loss) -> Array:
    start = loss.start()
    past = int(np.clip(MEMORY // (2 * len(start)), 3, 30))
    options = {"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "maxcor": past, "ftol": 1e-13, "gtol": 1e-9}
    minimize = require("scipy.optimize").minimize
    from threadpoolctl import threadpool_limits

    multiplications = (len(loss.images) + len(loss.outliers)) * len(loss.centre) * loss.n_classes
    with threadpool_limits(limits=1 if multiplications < SMALL else None):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if found.status == 1:
        warnings.warn(f"the linear head is not quite fitted after {found.nit} steps", stacklevel=4)
    return np.asarray(found.x)
