# Servers and sessions for the tests of pg_governor, for every supported version.
package GovernorTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(governed_node session holder set_all wait_for_queue gate_counts nothing_left);

# A server with the governor, and the given further lines of configuration.
sub governed_node
{
	my ($name, $settings, %how) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%how);
	$node->append_conf('postgresql.conf', <<"EOC");
shared_preload_libraries = 'pg_governor'
max_connections = 40
pg_governor.reserved_slots = 0
$settings
EOC
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_governor');
	return $node;
}

# A psql that stays: write SQL to it, and wait for what it says.
sub session
{
	my ($node, %how) = @_;
	my $self = bless { in => '', out => '', err => '', mark => 0 };
	my @user = $how{user} ? ('-U', $how{user}) : ();

	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), @user ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err},
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$self->{pid} = $self->ask('SELECT pg_backend_pid()') if !$how{quiet};
	return $self;
}

# Sends, without waiting.
sub tell
{
	my ($self, $sql) = @_;
	$self->{in} .= "$sql;\n";
	$self->{run}->pump_nb;
}

# Waits until everything that was sent is done; returns what came.
sub settle
{
	my ($self) = @_;
	my $mark = 'mark ' . ++$self->{mark} . ' end';

	$self->{in} .= "\\echo $mark\n";
	$self->{run}->pump until $self->{out} =~ /\Q$mark\E\n/;
	$self->{out} =~ s/\Q$mark\E\n//;
	my $out = $self->{out};
	$self->{out} = '';
	chomp $out;
	return $out;
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

# Settings for all sessions, seen by every one that is asked after this returns.
sub set_all
{
	my ($node, @settings) = @_;
	my @names;

	while (my ($name, $value) = splice @settings, 0, 2)
	{
		$node->safe_psql('postgres', "ALTER SYSTEM SET pg_governor.$name = '$value'");
		push @names, [ $name, $value ];
	}
	$node->reload;
	for (@names)
	{
		my ($name, $value) = @$_;
		$node->poll_query_until('postgres', "SELECT current_setting('pg_governor.$name') = '$value'
			OR '$value' IN (SELECT setting || coalesce(unit, '') FROM pg_settings WHERE name = 'pg_governor.$name')")
		  or die "$name did not become $value";
	}
	# the monitor publishes what sessions go by
	$node->safe_psql('postgres', "SELECT pg_sleep(0.05)");
}

sub wait_for_queue
{
	my ($node, $length) = @_;
	$node->poll_query_until('postgres', 'SELECT count(*) FROM pg_governor_queue', $length)
	  or die "the queue did not become $length long";
}

# Columns of the gate for transactions of the default pool.
sub gate_counts
{
	my ($node, $columns) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'");
}

sub nothing_left
{
	my ($node, $name) = @_;
	is( $node->safe_psql(
			'postgres', 'SELECT sum(taken), sum(queued), sum(running), sum(warm), sum(reserved)
			FROM pg_governor_pools'),
		'0|0|0|0|0', "$name: no slot is left");
}

1;
