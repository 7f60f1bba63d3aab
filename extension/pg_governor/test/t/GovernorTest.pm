# Servers and sessions for the tests of pg_governor, for every supported version.
package GovernorTest;

use strict;
use warnings FATAL => 'all';

use Carp;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(governed_node wait_for_monitor session holder set_all reload_all wait_for_look wait_for_log wait_for_queue gate_counts nothing_left);

# pg_ctl gives a server that starts a minute, and all tests end when one does not.
$ENV{PGCTLTIMEOUT} = $PostgreSQL::Test::Utils::timeout_default;

# The options of sessions that only look, and must not queue.
our $LOOK = '-c pg_governor.gate_begin=off -c pg_governor.gate_autocommit=off';

# A server with the governor, and the given further lines of configuration.  Its limits always hold,
# so that a test sees the one rule that it is about.
sub governed_node
{
	my ($name, $settings, %how) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%how);
	$node->append_conf('postgresql.conf', <<"EOC");
shared_preload_libraries = 'pg_governor'
max_connections = 40
pg_governor.reserved_slots = 0
pg_governor.overload_factor = 1
$settings
EOC
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_governor');
	wait_for_monitor($node);
	return $node;
}

# Gates are open until the monitor has come: who begins before that has no slot.
sub wait_for_monitor
{
	my ($node) = @_;
	local $ENV{PGOPTIONS} = $LOOK;
	$node->poll_query_until('postgres', 'SELECT monitor_pid > 0 FROM pg_governor_health')
	  or croak 'the monitor did not come';
}

# A psql that stays: write SQL to it, and wait for what it says.  The timeout is one of each wait,
# and not of the session's life.
sub session
{
	my ($node, %how) = @_;
	my $self = bless { in => '', out => '', err => '', mark => 0, told => 'nothing' };
	my @user = $how{user} ? ('-U', $how{user}) : ();

	$self->{timeout} = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), @user ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timeout});
	$self->{pid} = $self->ask('SELECT pg_backend_pid()') if !$how{quiet};
	return $self;
}

# Sends, without waiting.
sub tell
{
	my ($self, $sql) = @_;
	$self->{told} = $sql;
	$self->{in} .= "$sql;\n";
	$self->{timeout}->start;
	$self->{run}->pump_nb;
}

# Waits until everything that was sent is done; returns what came.
sub settle
{
	my ($self) = @_;
	my $mark = 'mark ' . ++$self->{mark} . ' end';

	$self->{in} .= "\\echo $mark\n";
	$self->{timeout}->start;
	eval { $self->{run}->pump until $self->{out} =~ /\Q$mark\E\n/; 1 }
	  or croak "no end of \"$self->{told}\": $@it said \"$self->{out}\" and \"$self->{err}\"";
	$self->{out} =~ s/\Q$mark\E\n//;
	my $out = $self->{out};
	$self->{out} = '';
	chomp $out;
	return $out;
}

# Reads and writes what there is to, without waiting.
sub pump
{
	my ($self) = @_;
	$self->{run}->pump_nb;
	usleep(1000);
}

# Whether everything that was sent is done; the first call asks for it.  It may be called until it is.
sub has_ended
{
	my ($self) = @_;

	if (!$self->{ends})
	{
		$self->{ends} = 'mark ' . ++$self->{mark} . ' end';
		$self->{in} .= "\\echo $self->{ends}\n";
		$self->{timeout}->start;
	}
	$self->{run}->pump_nb;
	return 0 unless $self->{out} =~ /\Q$self->{ends}\E\n/;
	$self->{out} = '';
	$self->{ends} = undef;
	return 1;
}

# Cancels what the session runs.  A cancel that comes between two statements does nothing, so there are
# as many as it takes.
sub cancel
{
	my ($self, $node) = @_;
	my $mark = 'mark ' . ++$self->{mark} . ' end';

	$self->{in} .= "\\echo $mark\n";
	$self->{timeout}->start;
	until ($self->{out} =~ /\Q$mark\E\n/)
	{
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($self->{pid})");
		usleep(10_000);
		$self->{run}->pump_nb;
	}
	$self->{out} = '';
	$self->ask('ROLLBACK');
	$self->errors;
}

sub ask
{
	my ($self, $sql) = @_;
	$self->tell($sql);
	return $self->settle;
}

# What the session was told on its standard error since the last time.
sub errors
{
	my ($self) = @_;
	my $errors = $self->{err};
	$self->{err} = '';
	return $errors;
}

sub leave
{
	my ($self) = @_;
	$self->{in} .= "\\q\n";
	$self->{timeout}->start;
	$self->{run}->finish;
}

# The client is gone, without a word.
sub vanish
{
	my ($self) = @_;
	$self->{run}->kill_kill;
}

# A session that has a slot, and keeps it until it is told otherwise.
sub holder
{
	my ($node, %how) = @_;
	my $session = session($node, %how);
	$session->ask('BEGIN');
	return $session;
}

# Settings for all sessions and the monitor, which have them when this returns.
sub set_all
{
	my ($node, @settings) = @_;
	my $sql = '';

	while (my ($name, $value) = splice @settings, 0, 2)
	{
		$sql .= "ALTER SYSTEM SET pg_governor.$name = '$value';\n";
	}
	$node->safe_psql('postgres', $sql);
	reload_all($node);
}

# A session that is made after the postmaster has read the files knows when it did; by then it has sent
# its signals, and the monitor's next look is with what it was told.
sub reload_all
{
	my ($node) = @_;
	local $ENV{PGOPTIONS} = $LOOK;
	my $before = $node->safe_psql('postgres', 'SELECT clock_timestamp()');

	$node->reload;
	$node->poll_query_until('postgres', "SELECT pg_conf_load_time() > '$before'")
	  or croak 'the server did not reload its configuration';
	wait_for_look($node);
}

# A look of the monitor that began after this was called has ended.
sub wait_for_look
{
	my ($node) = @_;
	local $ENV{PGOPTIONS} = $LOOK;

	$node->safe_psql('postgres', <<'EOC');
DO $$DECLARE began timestamptz := clock_timestamp();
BEGIN
	PERFORM pg_reload_conf();
	WHILE (SELECT monitor_last_look <= began FROM pg_governor_health) LOOP PERFORM pg_sleep(0.005); END LOOP;
END$$
EOC
}

# A process that has done something may need a moment to write that.
sub wait_for_log
{
	my ($node, $line) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if slurp_file($node->logfile) =~ $line;
		usleep(100_000);
	}
	return 0;
}

sub wait_for_queue
{
	my ($node, $length) = @_;
	$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_queue', $length)
	  or croak "the queue did not become $length long";
}

# Columns of the gate for transactions of the default pool.
sub gate_counts
{
	my ($node, $columns) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'");
}

# A backend whose client has gone may need a moment to end.
sub nothing_left
{
	my ($node, $name) = @_;
	ok($node->poll_query_until('postgres', 'SELECT sum(taken), sum(queued), sum(running), sum(warm), sum(reserved),
			(SELECT repairs FROM pg_governor_health) FROM pg_governor_pools', '0|0|0|0|0|0'),
		"$name: no slot is left, and nothing was repaired");
}

1;
