# The slot is released after the locks of the transaction: who is let in by a COMMIT or a
# ROLLBACK finds none of them.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use Test::More;

# So many locks that it takes milliseconds to release them, which is the time to catch.
my $locks = 40_000;
my $node = governed_node('locks_first', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.policy = fifo
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
max_locks_per_transaction = 1500
EOC

my $holder = session($node);
my $waiter = session($node);
for my $end ('COMMIT', 'ROLLBACK', 'COMMIT', 'ROLLBACK')
{
	$holder->ask('BEGIN');
	$holder->ask("SELECT count(pg_advisory_xact_lock(i)) FROM generate_series(1, $locks) i");
	# one message, so that the count follows the admission at once
	$waiter->tell("BEGIN\\; SELECT count(*) FROM pg_locks WHERE pid = $holder->{pid} AND locktype = 'advisory'\\; COMMIT");
	wait_for_queue($node, 1);
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $holder->{pid} AND locktype = 'advisory'"),
		$locks, 'the holder has its locks');
	$holder->ask($end);
	is($waiter->settle, '0', "none is left when a $end lets a waiter in");
}
nothing_left($node, 'locks');

done_testing();
