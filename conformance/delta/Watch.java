package isolitmus;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.delta.CommittedTransaction;
import org.apache.spark.sql.delta.NoOpTransactionExecutionObserver$;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.TransactionExecutionObserver;
import org.apache.spark.sql.delta.TransactionExecutionObserver$;
import org.apache.spark.unsafe.Platform;
import scala.Function0;
import scala.Option;

/**
 * Observer of every transaction of Delta in the JVM, in any thread; it assigns each one to the gate of its owner.
 * parking.py explains the design. Janino, which is part of Spark, compiles this file. It supports no generics, and
 * makes private methods static (a synchronized one would then lock the class), so there are no private methods.
 */
public final class Watch implements TransactionExecutionObserver, Supplier {
    public static final String GATE = "isolitmus.gate";

    private static final int INIT = 0;
    private static final int PREPARE = 1;
    private static final int COMMIT = 2;

    private final Map gates = new ConcurrentHashMap();
    private SparkContext context;
    private int users = 0;
    private ThreadLocal before;
    private volatile Gate step;
    private Option next = Option.empty();

    /** Become the observer of every thread, until go() was called as often as come(). */
    public synchronized void come(SparkContext context) {
        if (users++ == 0) {
            this.context = context;
            before = TransactionExecutionObserver$.MODULE$.threadObserver();
            observe(ThreadLocal.withInitial(this));
        }
    }

    public synchronized void go() {
        if (--users == 0) {
            observe(before);
        }
    }

    static void observe(ThreadLocal threads) {
        TransactionExecutionObserver$.MODULE$
            .org$apache$spark$sql$delta$ThreadStorageExecutionObserver$_setter_$threadObserver_$eq(threads);
    }

    /** Returns a gate for the transactions on a table (null: any) of the threads that have its name. */
    public Gate gate(String name, String table, int stop) {
        Gate gate = new Gate(this, name, table, stop);
        gates.put(name, gate);
        return gate;
    }

    public void forget(String name) {
        gates.remove(name);
    }

    /** Assigns the transactions of threads without a name to a gate (null: none), for the time of a step. */
    public void attribute(Gate gate) {
        step = gate;
    }

    Gate current() {
        String name = context.getLocalProperty(GATE);
        return name == null ? step : (Gate) gates.get(name);
    }

    public Object get() {
        return this;
    }

    /** Delta begins a transaction. It is begun once to see its table, and again if it had to wait at the gate. */
    public OptimisticTransaction startingTransaction(Function0 begin) {
        Gate gate = current();
        OptimisticTransaction seen = (OptimisticTransaction) begin.apply();
        return gate != null && gate.concerns(seen) ? gate.begin(begin, seen) : seen;
    }

    public Option nextObserver() {
        return next;
    }

    public void nextObserver_$eq(Option observer) {
        next = observer;
    }

    public TransactionExecutionObserver createChild() {
        return this;
    }

    public Object preparingCommit(Function0 prepare) {
        return prepare.apply();
    }

    public void beginDoCommit() {}

    public void beginBackfill() {}

    public void beginPostCommit() {}

    public void transactionCommitted() {}

    public void transactionAborted() {}

    /** Gate that holds the transactions of one callable at a phase and the later ones, until it is opened. */
    public static final class Gate {
        private final Watch watch;
        private final String name;
        private final String table;
        private final ArrayList seen = new ArrayList();
        private int stop;
        private Thread worker;

        private Gate(Watch watch, String name, String table, int stop) {
            this.watch = watch;
            this.name = name;
            this.table = table;
            this.stop = stop;
        }

        /** The current thread belongs to the callable. */
        public void enter() {
            worker = Thread.currentThread();
            watch.context.setLocalProperty(GATE, name);
        }

        public void leave() {
            watch.context.setLocalProperty(GATE, null);
        }

        boolean concerns(OptimisticTransaction transaction) {
            if (table == null) {
                return true;
            }
            try {
                String path = transaction.deltaLog().dataPath().toUri().getPath();
                return new File(path).getCanonicalPath().equals(table);
            } catch (IOException e) {
                return false;
            }
        }

        OptimisticTransaction begin(Function0 begin, OptimisticTransaction first) {
            Held held = new Held(this);
            synchronized (this) {
                seen.add(held);
            }
            boolean waited = pass(held, INIT);
            held.transaction = waited ? (OptimisticTransaction) begin.apply() : first;
            held.transaction.executionObserver_$eq(held);
            return held.transaction;
        }

        /** A transaction reaches a phase; returns whether it had to wait. */
        synchronized boolean pass(Held held, int phase) {
            boolean waited = false;
            held.phase = phase;
            held.waits = true;
            try {
                while (phase >= Math.max(stop, held.reach) && !held.free) {
                    waited = true;
                    wait();
                }
            } catch (InterruptedException e) {
                Platform.throwException(e);
            } finally {
                held.waits = false;
                held.waited |= waited;
            }
            return waited;
        }

        /** Hold at this phase from now on. */
        public synchronized void open(int stop) {
            this.stop = stop;
            notifyAll();
        }

        /** Releases the held transactions to their end, and holds the others at this phase. */
        public synchronized void openOnce(int stop) {
            for (Object item : seen) {
                Held held = (Held) item;
                held.free |= stays(held);
            }
            open(stop);
        }

        /** Releases the held transactions by a step: to their commit, and from there to their end. */
        public synchronized void advance() {
            for (Object item : seen) {
                Held held = (Held) item;
                if (stays(held)) {
                    held.free = held.phase == COMMIT;
                    held.reach = COMMIT;
                }
            }
            notifyAll();
        }

        boolean stays(Held held) {
            return held.waits && held.phase >= Math.max(stop, held.reach) && !held.free;
        }

        /** Whether a transaction is held here. */
        public synchronized boolean holds() {
            return holdsBefore(COMMIT + 1);
        }

        /** Whether a transaction is held here before its commit. */
        public synchronized boolean reads() {
            return holdsBefore(COMMIT);
        }

        boolean holdsBefore(int phase) {
            for (Object item : seen) {
                Held held = (Held) item;
                if (stays(held) && held.phase < phase) {
                    return true;
                }
            }
            return false;
        }

        /** Whether no transaction of the callable still runs in another thread; asked after it has returned. */
        public synchronized boolean settled() {
            for (Object item : seen) {
                Held held = (Held) item;
                boolean begun = held.waits || held.waited || held.phase == COMMIT;
                if (begun && !held.over && held.thread != worker && held.thread.isAlive()) {
                    return false;
                }
            }
            return true;
        }

        /** A line for each transaction: id, read version, last phase, committed version, and the newest version
         * when it failed; -2 for a missing version.
         */
        public synchronized String attempts() {
            StringBuilder lines = new StringBuilder();
            for (Object item : seen) {
                ((Held) item).tell(lines);
            }
            return lines.toString();
        }
    }

    private static final class Held implements TransactionExecutionObserver {
        private final Gate gate;
        private final Thread thread = Thread.currentThread();
        private OptimisticTransaction transaction;
        private int phase;
        private int reach = INIT;
        private boolean waits;
        private boolean waited;
        private boolean free;
        private volatile boolean over;
        private volatile long failedAt = -2;
        private Option next = Option.empty();

        private Held(Gate gate) {
            this.gate = gate;
        }

        void tell(StringBuilder lines) {
            long version = -2;
            if (over && transaction.getCommitted().isDefined()) {
                version = ((CommittedTransaction) transaction.getCommitted().get()).committedVersion();
            }
            lines.append(transaction == null ? "-" : transaction.txnId()).append(' ');
            lines.append(transaction == null ? -2 : transaction.readVersion()).append(' ');
            lines.append(phase).append(' ').append(version).append(' ').append(failedAt).append('\n');
        }

        public OptimisticTransaction startingTransaction(Function0 begin) {
            return gate.watch.startingTransaction(begin);
        }

        public Object preparingCommit(Function0 prepare) {
            gate.pass(this, PREPARE);
            return prepare.apply();
        }

        public void beginDoCommit() {
            gate.pass(this, COMMIT);
        }

        public void beginBackfill() {}

        public void beginPostCommit() {}

        public void transactionCommitted() {
            over = true;
        }

        public void transactionAborted() {
            failedAt = newest();
            over = true;
        }

        long newest() {
            String[] names = new File(transaction.deltaLog().logPath().toUri().getPath()).list();
            long newest = -1;
            for (int i = 0; names != null && i < names.length; i++) {
                if (names[i].matches("[0-9]{20}\\.json")) {
                    newest = Math.max(newest, Long.parseLong(names[i].substring(0, 20)));
                }
            }
            return newest;
        }

        public TransactionExecutionObserver createChild() {
            return gate.watch;
        }

        public Option nextObserver() {
            return next;
        }

        public void nextObserver_$eq(Option observer) {
            next = observer;
        }
    }
}
