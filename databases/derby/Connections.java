package isolitmus;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.net.URLDecoder;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Connections to a Derby database in memory, each in its own thread. A request is a line of words, each encoded as in a
 * URL; a reply is a line of JSON. The program ends when its standard input does. Janino, which is part of Spark,
 * compiles this file; it supports no generics.
 */
public final class Connections {
    private static final String URL = "jdbc:derby:memory:isolitmus";
    private static final String WAITS = "SELECT t.USERNAME, l.MODE, l.STATE, l.TYPE, l.TABLENAME, l.LOCKNAME"
        + " FROM SYSCS_DIAG.LOCK_TABLE l JOIN SYSCS_DIAG.TRANSACTION_TABLE t ON l.XID = t.XID";
    private static final Pattern SCAN
        = Pattern.compile("(Table|Index) Scan ResultSet for \\S+(?: using (?:index|constraint) (\\S+))?");
    private static final int FRAMES = 5;  // stack frames to search for Derby's waiting method, which is near the top
    static int turn = 0;
    static final Map clients = new ConcurrentHashMap();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Thread.currentThread().setContextClassLoader(Connections.class.getClassLoader());
        Connection own = DriverManager.getConnection(URL + ";create=true;user=APP");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < words.length; i++) {
                words[i] = URLDecoder.decode(words[i], "UTF-8");
            }
            try {
                out.println(answer(own, words));
            } catch (SQLException error) {
                out.println("{\"error\": " + error(error) + "}");
            }
        }
    }

    static String answer(Connection own, String[] words) throws Exception {
        String verb = words[0];
        if (verb.equals("hello")) {
            return "{\"reply\": " + text(own.getMetaData().getDatabaseProductVersion()) + "}";
        }
        if (verb.equals("run")) {
            Statement statement = own.createStatement();
            try {
                StringBuffer rows = new StringBuffer("{\"reply\": [");
                if (statement.execute(words[1])) {
                    rows(statement.getResultSet(), rows);
                }
                return rows + "]}";
            } finally {
                statement.close();
            }
        }
        if (verb.equals("open")) {
            Client client = new Client(words[1], DriverManager.getConnection(URL + ";user=\"" + words[1] + "\""));
            client.connection.setAutoCommit(false);
            client.connection.setTransactionIsolation(Integer.parseInt(words[2]));
            Statement statement = client.connection.createStatement();
            statement.execute("SET SCHEMA APP");
            statement.execute("CALL SYSCS_UTIL.SYSCS_SET_RUNTIMESTATISTICS(1)");
            statement.close();
            client.connection.commit();
            clients.put(words[1], client);
            client.setDaemon(true);
            client.setContextClassLoader(Connections.class.getClassLoader());
            client.start();
            return "{\"reply\": null}";
        }
        if (verb.equals("close")) {
            return "{\"reply\": " + close(Long.parseLong(words[1])) + "}";
        }
        if (verb.equals("settle")) {
            return "{\"reply\": " + settle(own, Long.parseLong(words[1])) + "}";
        }
        Client client = (Client) clients.get(words[1]);
        if (verb.equals("ask")) {
            client.ask(Integer.parseInt(words[2]), words[3]);
        } else if (verb.equals("let")) {
            client.let(Integer.parseInt(words[2]));
        } else if (verb.equals("cancel")) {
            client.cancel();
        } else {
            throw new IllegalArgumentException(verb);
        }
        return "{\"reply\": null}";
    }

    /** Whether all connections are closed within this time, whatever they were doing. */
    static boolean close(long millis) throws Exception {
        for (Iterator i = clients.values().iterator(); i.hasNext();) {
            ((Client) i.next()).leave();
        }
        long end = System.currentTimeMillis() + millis;
        boolean all = true;
        for (Iterator i = clients.values().iterator(); i.hasNext();) {
            Client client = (Client) i.next();
            client.join(Math.max(1, end - millis / 2 - System.currentTimeMillis()));
            if (client.isAlive()) {
                client.interrupt();
                client.join(Math.max(1, end - System.currentTimeMillis()));
            }
            all &= !client.isAlive();
        }
        clients.clear();
        return all;
    }

    /**
     * Called by a scan at each of its rows, with the client's name, whether the condition is true so far, and the row's
     * values; it holds the row until it may pass.
     */
    public static int pass(String... words) throws Exception {
        if (words[1] == null || !words[1].trim().equals("true")) {
            return 1;
        }
        StringBuffer row = new StringBuffer("[");
        for (int i = 2; i < words.length; i++) {
            row.append(i == 2 ? "" : ", ").append(text(words[i]));
        }
        return ((Client) clients.get(words[0])).pass(row + "]");
    }

    /**
     * Waits until every client is idle, held at a row, or waits for a lock, and reports the state of each; a client
     * that is none of these when the time is over has the state "runs". A thread whose lock was granted leaves the state
     * WAITING before the releasing thread is idle; each is polled twice, since they wake one another.
     */
    static String settle(Connection own, long millis) throws Exception {
        long end = System.currentTimeMillis() + millis;
        long nap = 0;
        while (true) {
            boolean over = System.currentTimeMillis() > end;
            boolean still = true;
            for (Iterator i = clients.values().iterator(); i.hasNext();) {
                still &= ((Client) i.next()).still(nap);
            }
            if (still || over) {
                String before = places();
                Map waits = waits(own);
                for (Iterator i = clients.values().iterator(); i.hasNext();) {
                    Client client = (Client) i.next();
                    still &= client.still(0) && (!client.busy || client.held || waits.containsKey(client.name));
                }
                if (over || still && before.equals(places())) {
                    StringBuffer told = new StringBuffer();
                    for (Iterator i = clients.values().iterator(); i.hasNext();) {
                        Client client = (Client) i.next();
                        told.append(told.length() == 0 ? "{" : ", ").append(text(client.name)).append(": ");
                        told.append(client.told((Wait) waits.get(client.name)));
                    }
                    return told.length() == 0 ? "{}" : told + "}";
                }
            }
            nap = 1;
        }
    }

    static String places() {
        StringBuffer found = new StringBuffer();
        for (Iterator i = clients.values().iterator(); i.hasNext();) {
            found.append(((Client) i.next()).place());
        }
        return found.toString();
    }

    /** Waiting clients, each with those it waits for: incompatible holders of the lock, and earlier waiters. */
    static Map waits(Connection own) throws SQLException {
        List locks = new ArrayList();
        Map waits = new TreeMap();
        Statement statement = own.createStatement();
        ResultSet found = statement.executeQuery(WAITS);
        while (found.next()) {
            String lock = found.getString(4) + " " + found.getString(5) + " " + found.getString(6);
            if (found.getString(1) == null) {
                continue;  // an internal transaction of Derby
            }
            String[] one = {found.getString(1), found.getString(2), found.getString(3), lock};
            locks.add(one);
            Client client = (Client) clients.get(one[0]);
            if (one[2].equals("WAIT") && client != null) {
                waits.put(one[0], client.waits(one[1] + " " + lock));
            }
        }
        statement.close();
        for (int i = 0; i < locks.size(); i++) {
            String[] asked = (String[]) locks.get(i);
            Wait wait = (Wait) waits.get(asked[0]);
            if (asked[2].equals("WAIT") && wait != null) {
                behind(asked, wait, waits, locks);
            }
        }
        return waits;
    }

    /** A client waits for incompatible holders and earlier incompatible waiters, or else for the whole queue. */
    static void behind(String[] asked, Wait wait, Map waits, List locks) {
        Set queue = new TreeSet();
        boolean has = false;
        for (int j = 0; j < locks.size(); j++) {
            String[] other = (String[]) locks.get(j);
            Wait before = (Wait) waits.get(other[0]);
            boolean granted = other[2].equals("GRANT");
            if (!other[3].equals(asked[3])) {
                continue;
            }
            if (other[0].equals(asked[0])) {
                has |= granted;
            } else if (granted && !compatible(other[1], asked[1])) {
                wait.behind.add(other[0]);
            } else if (!granted && before != null && before.since < wait.since) {
                queue.add(other[0] + " " + other[1]);
            }
        }
        for (int all = 0; all < 2 && !has && (all == 0 || wait.behind.isEmpty()); all++) {
            for (Iterator i = queue.iterator(); i.hasNext();) {
                String[] other = ((String) i.next()).split(" ");
                if (all == 1 || !compatible(other[1], asked[1])) {
                    wait.behind.add(other[0]);
                }
            }
        }
    }

    /** Compatibility of row and table locks: Derby's manual, "Types and scope of locks". */
    static boolean compatible(String held, String asked) {
        if (held.equals("S") || held.equals("U")) {
            return asked.equals("S") || asked.equals("IS") || held.equals("S") && asked.equals("U");
        }
        if (held.equals("IS")) {
            return !asked.equals("X");
        }
        return held.equals("IX") && asked.startsWith("I");
    }

    static void rows(ResultSet found, StringBuffer rows) throws SQLException {
        int columns = found.getMetaData().getColumnCount();
        while (found.next()) {
            rows.append(rows.charAt(rows.length() - 1) == '[' ? "[" : ", [");
            for (int i = 1; i <= columns; i++) {
                Object value = found.getObject(i);
                boolean plain = value == null || value instanceof Number || value instanceof Boolean;
                rows.append(i == 1 ? "" : ", ");
                if (value instanceof java.sql.Date) {
                    rows.append("{\"date\": " + text(value.toString()) + "}");
                } else {
                    rows.append(plain ? String.valueOf(value) : text(value.toString()));
                }
            }
            rows.append("]");
        }
    }

    static String error(SQLException error) {
        return "{\"state\": " + text(error.getSQLState()) + ", \"message\": " + text(error.getMessage()) + "}";
    }

    static String text(String said) {
        if (said == null) {
            return "null";
        }
        StringBuffer quoted = new StringBuffer("\"");
        for (int i = 0; i < said.length(); i++) {
            char c = said.charAt(i);
            if (c < ' ') {
                quoted.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
            } else {
                quoted.append(c == '"' || c == '\\' ? "\\" : "").append(c);
            }
        }
        return quoted + "\"";
    }

    /** What a client waits for, behind which clients, and since when. */
    public static final class Wait {
        final String wants;
        final int since;
        final Set behind = new TreeSet();

        public Wait(String wants, int since) {
            this.wants = wants;
            this.since = since;
        }
    }

    public static final class Client extends Thread {
        final String name;
        final Connection connection;
        private String asked;
        private int stop;
        private List passed = new ArrayList();
        private String rows = "null";
        private String path;
        private int count;
        private SQLException failed;
        private boolean ended;
        private boolean cancelled;
        private Wait waiting;
        volatile boolean busy;
        volatile boolean held;

        public Client(String name, Connection connection) {
            this.name = name;
            this.connection = connection;
        }

        /** Sends a statement, which is held at the row of this number (0: at none). */
        public synchronized void ask(int stop, String statement) {
            asked = statement;
            waiting = null;
            this.stop = stop;
            passed = new ArrayList();
            rows = "null";
            path = null;
            count = 0;
            failed = null;
            busy = true;
            notifyAll();
        }

        /** Releases the statement up to the row of this number (0: to its end). */
        public synchronized void let(int stop) {
            this.stop = stop;
            held = false;
            notifyAll();
        }

        public synchronized void cancel() {
            cancelled = true;
            let(0);
        }

        public synchronized int pass(String row) throws InterruptedException, SQLException {
            passed.add(row);
            if (passed.size() == stop && !ended) {
                held = true;
                notifyAll();
                while (held) {
                    wait();
                }
            }
            if (ended || cancelled) {
                cancelled = false;
                throw new SQLException("cancelled", "38000");
            }
            return 1;
        }

        /** Whether it is idle, held or waits for a lock; waits for this up to millis. */
        public synchronized boolean still(long millis) throws InterruptedException {
            if (busy && !held && millis > 0) {
                wait(millis);
            }
            return !busy || held || parked();
        }

        /**
         * Whether its thread is in Derby's method that waits for a lock, which comes after the check for a deadlock. In
         * that check, and at latches of Derby, a thread waits only for a moment.
         */
        private boolean parked() {
            ThreadInfo now = ManagementFactory.getThreadMXBean().getThreadInfo(getId(), FRAMES);
            boolean found = false;
            if (now != null && now.getThreadState() == Thread.State.WAITING) {
                StackTraceElement[] frames = now.getStackTrace();
                for (int i = 0; i < frames.length; i++) {
                    found |= frames[i].getMethodName().equals("waitForGrant");
                }
            }
            return found;
        }

        public synchronized String place() {
            return name + busy + held + passed.size() + " ";
        }

        public synchronized String told(Wait wait) {
            StringBuffer told = new StringBuffer("{\"state\": ");
            told.append(!busy ? "\"idle\"" : held ? "\"held\"" : wait != null ? "\"waits\"" : "\"runs\"");
            told.append(", \"wants\": ").append(text(wait == null ? "" : wait.wants)).append(", \"behind\": [");
            Iterator names = wait == null ? new ArrayList().iterator() : wait.behind.iterator();
            while (names.hasNext()) {
                told.append(text((String) names.next())).append(names.hasNext() ? ", " : "");
            }
            told.append("], \"passed\": ").append(passed);
            told.append(", \"path\": ").append(text(path)).append(", \"rows\": ").append(rows).append(", \"changed\": ").append(count);
            return told.append(", \"failure\": ").append(failed == null ? "null" : error(failed)).append("}").toString();
        }

        /** Its wait, which stays the same as long as it wants the same lock. */
        public synchronized Wait waits(String wants) {
            int since = waiting != null && waiting.wants.equals(wants) ? waiting.since : ++turn;
            waiting = new Wait(wants, since);
            return waiting;
        }

        /** Lets its statement fail and closes its connection. */
        public synchronized void leave() {
            ended = true;
            held = false;
            notifyAll();
        }

        public void run() {
            try {
                for (String statement = next(); statement != null; statement = next()) {
                    carryOut(statement);
                }
                connection.rollback();
                connection.close();
            } catch (Exception error) {
                return;
            }
        }

        public synchronized String next() throws InterruptedException {
            while (asked == null && !ended) {
                wait();
            }
            String statement = asked;
            asked = null;
            return statement;
        }

        public void carryOut(String text) {
            String found = "null";
            String gone = null;
            int changed = 0;
            SQLException error = null;
            try {
                if (text.equals("COMMIT")) {
                    connection.commit();
                } else if (text.equals("ROLLBACK")) {
                    connection.rollback();
                } else {
                    Statement statement = connection.createStatement();
                    try {
                        if (statement.execute(text)) {
                            StringBuffer rows = new StringBuffer("[");
                            try {
                                rows(statement.getResultSet(), rows);
                            } finally {
                                found = rows + "]";  // also for a query that fails halfway
                            }
                        } else {
                            changed = statement.getUpdateCount();
                            gone = text.startsWith("INSERT") ? null : path(statement);
                        }
                    } finally {
                        statement.close();
                    }
                }
            } catch (SQLException caught) {
                error = caught;
            }
            end(found, gone, changed, error);
        }

        /** Index that the finished UPDATE or DELETE used; empty for the heap. */
        static String path(Statement statement) throws SQLException {
            ResultSet told = statement.executeQuery("VALUES SYSCS_UTIL.SYSCS_GET_RUNTIMESTATISTICS()");
            told.next();
            String plan = told.getString(1);  // plans of subqueries come first
            Matcher scan = SCAN.matcher(plan.substring(Math.max(0, plan.lastIndexOf("End Subquery Number"))));
            return scan.find() && scan.group(2) != null ? scan.group(2) : "";
        }

        public synchronized void end(String found, String gone, int changed, SQLException error) {
            rows = found;
            path = gone;
            count = changed;
            failed = error;
            busy = false;
            held = false;
            notifyAll();
        }
    }
}
