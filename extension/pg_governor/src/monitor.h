/*
 * monitor.h
 *		The background worker that watches those who queue and those who run.
 */
#ifndef GOVERNOR_MONITOR_H
#define GOVERNOR_MONITOR_H

extern void governor_monitor_register(void);

#endif							/* GOVERNOR_MONITOR_H */
