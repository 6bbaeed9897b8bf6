"""Draws plans, measurements and simulations as SVG or PNG files. Needs the extra ``plots``
(matplotlib).

Each function takes the path of the file to write; its ending sets the format: ``.svg``, ``.png`` or
``.pdf``.
"""

from constructs_triton_core.keywords import check_names
from constructs_triton_tools.measuring.plots.plan_plot import plot_measurements, plot_plans
from constructs_triton_tools.measuring.plots.simulation_plot import plot_simulation

__all__ = ["plot_measurements", "plot_plans", "plot_simulation"]

check_names(globals(), __all__)
