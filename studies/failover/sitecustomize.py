# time.sleep waits for a moment of the monotonic clock, which libfaketime 0.9.10 takes for one of the clock
# that it has changed: the call fails.
import select
import time

time.sleep = lambda seconds: select.select([], [], [], seconds)
