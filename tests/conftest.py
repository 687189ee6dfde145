"""What holds for every test: hypothesis judges no times, draws the same examples in every run, and interrupts arrive.

A shell starts what it runs in the background with interrupts ignored, and every process that a test starts would
inherit that: one that waits to be interrupted would wait for ever.
"""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "privacygames",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("privacygames")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
