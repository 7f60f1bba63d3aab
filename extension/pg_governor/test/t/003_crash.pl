# A holder and a waiter are killed: the server restarts, and no slot is lost.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('crash', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.queue_timeout = 0
restart_after_crash = on
EOC

for my $victim (qw(holder waiter monitor))
{
	my $holder = holder($node);
	my $waiter = session($node);
	$waiter->tell('BEGIN');
	wait_for_queue($node, 1);
	my $monitor = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_governor monitor'");
	my %pid = (holder => $holder->{pid}, waiter => $waiter->{pid}, monitor => $monitor);

	kill 'KILL', $pid{$victim};
	$_->vanish for ($holder, $waiter);
	# a connection that fails while the server restarts is tried again; a psql that is gone before it
	# was sent its question makes IPC::Run die
	my $there;
	for (1 .. 10)
	{
		$there = eval { $node->poll_query_until('postgres',
			"SELECT count(*) = 1 AND NOT bool_or(pid = $monitor) FROM pg_stat_activity
			WHERE backend_type = 'pg_governor monitor'") };
		last if defined $there;
	}
	die 'no monitor' if !$there;
	$node->poll_query_until('postgres',
		"SELECT capacity FROM pg_governor_pools WHERE pool = 'default' AND class = 'transaction'", '1')
	  or die;
	nothing_left($node, "$victim killed");
	my $new = holder($node);
	is(gate_counts($node, 'taken, queued'), '1|0', "$victim killed: the gate works");
	$new->ask('COMMIT');
}

$node->restart;
nothing_left($node, 'restart');
$node->stop;
done_testing();
