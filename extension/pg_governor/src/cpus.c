/*
 * cpus.c
 *		How many CPUs this server may use: those of the machine, less what the
 *		affinity of the process or the quota of its control group takes away.  Like
 *		gate.c, it needs no server.
 */
#include "compat.h"

#include <math.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <unistd.h>

#include "cpus.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

static double quota_of(const char *root, const char *path);
static bool read_line(const char *file, char *line, int size);

int
governor_cpus(void)
{
	double		cpus = Max(1, sysconf(_SC_NPROCESSORS_ONLN));
	char		line[MAXPGPATH];
	const char *own = "";
	double		quota;
#ifdef __linux__
	cpu_set_t	set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		cpus = Min(cpus, CPU_COUNT(&set));
#endif
	/* Version 2 has one line, "0::/path". */
	if (read_line("/proc/self/cgroup", line, sizeof(line)) && strncmp(line, "0::", 3) == 0)
		own = line + 3;
	quota = governor_cpus_of_quota(CGROUP_ROOT, own);
	if (quota > 0)
		cpus = Min(cpus, quota);
	return Max(1, (int) ceil(cpus));
}

/* The least quota from the group up to the root; 0 if there is none. */
double
governor_cpus_of_quota(const char *cgroup_root, const char *own_path)
{
	char		path[MAXPGPATH];
	double		least = 0;

	snprintf(path, sizeof(path), "%s", own_path);
	for (;;)
	{
		double		quota = quota_of(cgroup_root, path);
		char	   *slash = strrchr(path, '/');

		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
		if (slash == NULL)
			return least;
		*slash = '\0';
	}
}

/* "QUOTA PERIOD" in version 2, and two files in version 1; "max" and -1 are none. */
static double
quota_of(const char *root, const char *path)
{
	char		file[MAXPGPATH];
	char		line[64];
	double		quota = 0;
	double		period = 0;

	snprintf(file, sizeof(file), "%s%s/cpu.max", root, path);
	if (read_line(file, line, sizeof(line)))
		return sscanf(line, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ?
			quota / period : 0;
	snprintf(file, sizeof(file), "%s/cpu%s/cpu.cfs_quota_us", root, path);
	if (!read_line(file, line, sizeof(line)) || sscanf(line, "%lf", &quota) != 1 || quota <= 0)
		return 0;
	snprintf(file, sizeof(file), "%s/cpu%s/cpu.cfs_period_us", root, path);
	if (!read_line(file, line, sizeof(line)) || sscanf(line, "%lf", &period) != 1 || period <= 0)
		return 0;
	return quota / period;
}

static bool
read_line(const char *file, char *line, int size)
{
	FILE	   *open = fopen(file, "r");
	bool		found = open != NULL && fgets(line, size, open) != NULL;

	if (open != NULL)
		fclose(open);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}
