SELECT put_and_get();
