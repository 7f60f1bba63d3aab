/*
 * cpus.h
 *		How many CPUs this server may use.
 */
#ifndef GOVERNOR_CPUS_H
#define GOVERNOR_CPUS_H

extern int	governor_cpus(void);
extern double governor_cpus_of_quota(const char *cgroup_root, const char *own_path);

#endif							/* GOVERNOR_CPUS_H */
