/*
 * loopback.c
 *		Whether the client of this session is another session of the same server.
 *
 * dblink and postgres_fdw make such connections.  The session that made it may have a slot, and waits for this
 * one: if this one queued for a slot, neither would ever go on, but for a timeout.
 *
 * A Unix socket tells which process is at the other end.  Over TCP only Linux does, in /proc: the table of
 * sockets names the inode of the client's, and the process that has it open is searched among those of the server.
 * That is asked only of a session that is about to wait, and once in its life.
 */
#include "compat.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libpq/libpq-be.h"
#include "storage/fd.h"
#include "storage/procarray.h"

#include "loopback.h"
#include "state.h"

static int	peer_pid(int sock);

/* Cheap enough to ask for each session at its beginning. */
bool
governor_loopback_by_unix(void)
{
	int			pid = peer_pid(MyProcPort->sock);

	return pid > 0 && BackendPidGetProc(pid) != NULL;
}

/* The process at the other end of a Unix socket; 0 if the system does not tell. */
static int
peer_pid(int sock)
{
#if defined(__linux__) && defined(SO_PEERCRED)
	struct ucred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
#elif defined(__OpenBSD__) && defined(SO_PEERCRED)
	struct sockpeercred peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
#elif defined(__APPLE__) && defined(LOCAL_PEERPID)
	pid_t		peer;
	socklen_t	length = sizeof(peer);

	return getsockopt(sock, SOL_LOCAL, LOCAL_PEERPID, &peer, &length) == 0 ? peer : 0;
#else
	return 0;
#endif
}

#ifdef __linux__

/* What /proc/net/tcp says of a socket: "ADDRESS:PORT ADDRESS:PORT", its own end first. */
#define ENDS_SIZE 100

static bool is_of_this_machine(void);
static char *write_end(char *to, const SockAddr *address);
static unsigned long inode_of(const char *ends);
static bool has_open(int pid, unsigned long inode);

bool
governor_loopback_by_tcp(void)
{
	static bool known = false;
	static bool found = false;
	char		ends[ENDS_SIZE];
	char	   *end;
	unsigned long inode;

	if (known)
		return found;
	known = true;
	if (MyProcPort == NULL || !is_of_this_machine())
		return false;
	end = write_end(ends, &MyProcPort->raddr);
	*end = ' ';
	write_end(end + 1, &MyProcPort->laddr);
	inode = inode_of(ends);
	for (int i = 0; inode != 0 && !found && i < governor->session_count; i++)
	{
		int			pid = *(volatile int *) &ProcGlobal->allProcs[i].pid;

		found = pid > 0 && pid != MyProcPid && has_open(pid, inode);
	}
	return found;
}

/* A connection from a machine to itself has one address at both ends, if nothing stands in between. */
static bool
is_of_this_machine(void)
{
	const struct sockaddr *local = (const struct sockaddr *) &MyProcPort->laddr.addr;
	const struct sockaddr *remote = (const struct sockaddr *) &MyProcPort->raddr.addr;

	if (local->sa_family != remote->sa_family)
		return false;
	if (local->sa_family == AF_INET)
		return memcmp(&((const struct sockaddr_in *) local)->sin_addr,
					  &((const struct sockaddr_in *) remote)->sin_addr, sizeof(struct in_addr)) == 0;
	return local->sa_family == AF_INET6 &&
		memcmp(&((const struct sockaddr_in6 *) local)->sin6_addr,
			   &((const struct sockaddr_in6 *) remote)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* As the kernel prints it: words of the address as the machine has them, and the port as a number.  Returns its end. */
static char *
write_end(char *to, const SockAddr *address)
{
	const uint32 *words;
	int			count;
	int			port;

	if (((const struct sockaddr *) &address->addr)->sa_family == AF_INET)
	{
		const struct sockaddr_in *in = (const struct sockaddr_in *) &address->addr;

		words = (const uint32 *) &in->sin_addr;
		count = 1;
		port = ntohs(in->sin_port);
	}
	else
	{
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *) &address->addr;

		words = (const uint32 *) &in->sin6_addr;
		count = 4;
		port = ntohs(in->sin6_port);
	}
	for (int i = 0; i < count; i++)
		to += sprintf(to, "%08X", words[i]);
	return to + sprintf(to, ":%04X", port);
}

/* Of a socket of the user that the server runs as; 0 if there is none. */
static unsigned long
inode_of(const char *ends)
{
	bool		is_v4 = ((const struct sockaddr *) &MyProcPort->raddr.addr)->sa_family == AF_INET;
	FILE	   *table = AllocateFile(is_v4 ? "/proc/net/tcp" : "/proc/net/tcp6", "r");
	unsigned long found = 0;
	char		line[512];

	while (table != NULL && found == 0 && fgets(line, sizeof(line), table) != NULL)
	{
		char	   *at = strstr(line, ends);
		unsigned	user;
		unsigned long inode;

		/* state, queues, timer, retransmissions; user, timeout, inode */
		if (at != NULL && sscanf(at + strlen(ends), " %*s %*s %*s %*s %u %*s %lu", &user, &inode) == 2 &&
			user == (unsigned) geteuid())
			found = inode;
	}
	if (table != NULL)
		FreeFile(table);
	return found;
}

static bool
has_open(int pid, unsigned long inode)
{
	char		wanted[64];
	char		path[MAXPGPATH];
	char		target[64];
	DIR		   *folder;
	struct dirent *entry;
	bool		found = false;

	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = AllocateDir(path);
	while (folder != NULL && !found && (entry = ReadDirExtended(folder, path, DEBUG1)) != NULL)
	{
		int			length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[Max(length, 0)] = '\0';
		found = strcmp(target, wanted) == 0;
	}
	if (folder != NULL)
		FreeDir(folder);
	return found;
}

#else

bool
governor_loopback_by_tcp(void)
{
	return false;
}

#endif
