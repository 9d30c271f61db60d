(* Theorem 18. docs/semantics.md, section 3.4:

   On tables with deletion vectors, let the checks of files at Serializable leave out each path to
   whose file both commits gave a vector with disjoint new positions, and let them compare instead
   the rows that the winner newly deleted there with the predicates that the loser recorded. If all
   reads of writers are recorded, every history that this check admits is log-serializable, for any
   number of transactions. Without the comparison it is not even write-serializable.

   The rule is that of delta-io/delta, issue 7357, code in pull 7359. Two commits reconcile a path
   if both gave its file a deletion vector, and the positions that they newly marked are disjoint.
   At Serializable the three checks of files (added, deleted-read, deleted-deleted) leave out
   reconciled paths. This alone breaks the promise: [row_level_rule_is_not_enough] below.

   The repair. On reconciled paths, the predicates that the loser recorded are evaluated on the rows
   whose positions the winner newly marked; a match aborts the loser.

   Premises: those of Theorem 5, but for two that have another form on such tables, and one more:
   - [rows_stay_in_paths], instead of [files]: a row of a file remains as it is until a commit
     removes the path without giving it a vector, or removes the path and newly marks the position
     of the row. (Whoever gives a file a vector removes the path, and adds it again. An UPDATE marks
     the position, and writes the row into a file that it adds.)
   - [new_rows_in_new_files] and [statistics], instead of [read_predicates]: a row that a commit
     wrote is in a file that the commit added without a vector; and a file with a row that matches a
     read of a writer is not skipped: partition filters and statistics exclude no matching file, and
     what a writer reads is among what it recorded.
   - [recorded_reads], in addition: a row that a writer read matches a predicate that it recorded,
     by the values that its file stores.

   Not covered: reads that are not recorded (a subquery in SET, the cached plan of a table, a query
   of the client outside of the transaction): [recorded_reads] and [read_files] exclude them. Nor
   are identity values, and several tables. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables theorem_5.

(* What a commit says of deletion vectors and files, in addition to a history. *)
Record vectors (h : history) := {
  gives_vector : transaction h -> file h -> bool;
  marks : transaction h -> file h -> row h -> bool;
  adds : transaction h -> file h -> bool;
  could_match : transaction h -> file h -> bool;
  records : transaction h -> file h -> row h -> bool
}.

Section Check.
  Variables (h : history) (v : vectors h).
  Implicit Types (i j k : transaction h) (f : file h) (x : row h).

  Definition reconciled i j f : Prop :=
    gives_vector h v i f /\ gives_vector h v j f /\
    forall x, ~ (marks h v i f x /\ marks h v j f x).

  Record row_level_rule : Prop := {
    no_op : forall i, writer h i -> ~ Unlogged h i;
    ConcurrentWriteException : forall i j, ~ overtaken h i j;
    MetadataChangedException : forall i j, metadata_changed h i j -> Unlogged h j;
    ConcurrentAppendException : forall i j f,
      unseen h i j -> ~ Backfill h i -> ~ Backfill h j -> adds h v i f -> could_match h v j f ->
      ~ reconciled i j f -> Downgraded h j;
    ConcurrentDeleteReadException : forall i j f,
      unseen h i j -> removes h i f -> read_file h j f -> ~ reconciled i j f -> Unlogged h j;
    ConcurrentDeleteDeleteException : forall i j f,
      unseen h i j -> removes h i f -> removes h j f -> ~ reconciled i j f -> Unlogged h j
  }.

  (* The repair: of which losers it is asked is as for added files. *)
  Definition deleted_rows_are_compared : Prop := forall i j f x,
    unseen h i j -> reconciled i j f -> marks h v i f x -> records h v j f x -> Downgraded h j.

  Definition row_level_rule_repaired : Prop := row_level_rule /\ deleted_rows_are_compared.

  (* Premises on tables with deletion vectors. *)
  Definition rows_stay_in_paths : Prop :=
    forall f x n i, holds h f x n -> writes h i x -> n < version h i ->
    exists k, writer h k /\ removes h k f /\ n < version h k /\ version h k <= version h i /\
      (~ gives_vector h v k f \/ marks h v k f x).
  Definition new_rows_in_new_files : Prop :=
    forall i j p x, tracked h j x -> writes h i x -> matches h j p x (version h i) ->
    exists f, adds h v i f /\ ~ gives_vector h v i f /\ holds h f x (version h i).
  Definition statistics : Prop :=
    forall i j p x f, tracked h j x -> adds h v i f -> holds h f x (version h i) ->
    matches h j p x (version h i) -> could_match h v j f.
  Definition recorded_reads : Prop :=
    forall j p x f, tracked h j x -> matches h j p x (read h j) -> holds h f x (read h j) ->
    records h v j f x.
End Check.

Section Proof.
  Variables (h : history) (v : vectors h).
  Hypothesis Snapshot : snapshot h.
  Hypothesis Put_if_absent : put_if_absent h.
  Hypothesis Committed : committed h.
  Hypothesis Definitions : definitions h.
  Hypothesis Read_files : read_files h.
  Hypothesis Rows : rows h.
  Hypothesis Compactions : compactions h.
  Hypothesis Backfills : backfills h.
  Hypothesis Rows_stay_in_paths : rows_stay_in_paths h v.
  Hypothesis New_rows_in_new_files : new_rows_in_new_files h v.
  Hypothesis Statistics : statistics h v.
  Hypothesis Recorded_reads : recorded_reads h v.
  Hypothesis Check : row_level_rule h v.
  Hypothesis Repair : deleted_rows_are_compared h v.

  Lemma sees_definitions i j x : definition h x -> writes h i x -> ~ unseen h i j.
  Proof.
    intros d w u; apply (no_op h v Check j); [apply u |].
    apply (MetadataChangedException h v Check i j); split; [exact u | right].
    now apply (Definitions i j x).
  Qed.

  (* A reader of rows is a loser of which each check asks. *)
  Lemma readers_are_tracked i j p x n :
    matches h j p x n -> writes h i x -> unseen h i j -> tracked h j x /\ ~ Downgraded h j.
  Proof.
    intros m w u; assert (wj : writer h j) by apply u.
    assert (d : ~ definition h x) by (intro d; now apply (sees_definitions i j x)).
    split; [repeat split; trivial; intro l; now apply (ConcurrentWriteException h v Check i j) |].
    intros [nd nm]; assert (ne : ~ Empty h j) by (intro e; now apply (no_op h v Check j wj)).
    destruct (Compactions j wj nd nm ne p x n) as [none _]; now apply none.
  Qed.

  Lemma sees_changes i j p x :
    matches h j p x (read h j) -> writes h i x -> ~ unseen h i j.
  Proof.
    intros m w u; destruct (readers_are_tracked i j p x (read h j) m w u) as [t live].
    destruct (Read_files j p x t m) as [f [hf or]].
    destruct (Rows_stay_in_paths f x (read h j) i hf w) as [k [wk [rk [lo [hi how]]]]]; [apply u |].
    assert (uk : unseen h k j).
    { destruct u as [[_ [wj lt]] _]; repeat split; trivial; lia. }
    assert (apart : ~ reconciled h v k j f).
    { intro both; destruct how as [plain | marked]; [now destruct both |].
      apply live, (Repair k j f x uk both marked), (Recorded_reads j p x f t m hf). }
    apply (no_op h v Check j); [apply u |]; destruct or as [r | r].
    - now apply (ConcurrentDeleteReadException h v Check k j f).
    - now apply (ConcurrentDeleteDeleteException h v Check k j f).
  Qed.

  Lemma sees_matches i j p x :
    matches h j p x (version h i) -> writes h i x -> ~ unseen h i j.
  Proof.
    intros m w u; destruct (readers_are_tracked i j p x (version h i) m w u) as [t live].
    destruct (New_rows_in_new_files i j p x t w m) as [f [a [plain hf]]].
    apply live, (ConcurrentAppendException h v Check i j f); trivial.
    - intro b; now destruct (Backfills i (proj1 w) b p x (version h i)).
    - intro b; destruct (Backfills j (proj1 t) b p x (version h i)) as [none _].
      apply none; split; [exact m | apply t].
    - now apply (Statistics i j p x f).
    - now intros [given _].
  Qed.

  Lemma keeps_log_order : log_serializable h.
  Proof. apply log_order; trivial; [exact sees_changes | exact sees_matches]. Qed.
End Proof.

Theorem row_level_repair (h : history) (v : vectors h) :
  snapshot h -> put_if_absent h -> committed h -> definitions h -> read_files h -> rows h ->
  compactions h -> backfills h ->
  rows_stay_in_paths h v -> new_rows_in_new_files h v -> statistics h v -> recorded_reads h v ->
  row_level_rule_repaired h v -> log_serializable h.
Proof. intros ? ? ? ? ? ? ? ? ? ? ? ? [check repair]; now apply (keeps_log_order h v). Qed.

Print Assumptions row_level_repair.

Definition premises (h : history) (v : vectors h) : Prop :=
  snapshot h /\ put_if_absent h /\ committed h /\ definitions h /\ read_files h /\ rows h /\
  compactions h /\ backfills h /\
  rows_stay_in_paths h v /\ new_rows_in_new_files h v /\ statistics h v /\ recorded_reads h v.

Ltac open_all :=
  unfold premises, snapshot, put_if_absent, committed, definitions, read_files, rows, compactions,
    backfills, reads_and_writes_none, rows_stay_in_paths, new_rows_in_new_files, statistics,
    recorded_reads, deleted_rows_are_compared, overtaken, metadata_changed, reconciled, Unlogged,
    Downgraded, tracked, unseen, log, writes.

(* Two transactions on one file with two rows: a deletes row 1, b deletes row 2, each by a deletion
   vector; b commits first, and a has not seen it. Each reads its own row; if [both], also the row
   of the other, as two MERGEs with matched clauses only do, whose sources read the own table:

     a: MERGE INTO t USING (SELECT id FROM t WHERE id = 2) AS s ON t.id = s.id - 1
        WHEN MATCHED THEN DELETE
     b: MERGE INTO t USING (SELECT id FROM t WHERE id = 1) AS s ON t.id = s.id + 1
        WHEN MATCHED THEN DELETE *)
Inductive name := a | b.
Inductive number := row_1 | row_2.

Section TwoMerges.
  Variable both : bool.

  Definition deletes (i : name) (x : number) : bool :=
    match i, x with a, row_1 | b, row_2 => true | _, _ => false end.
  Definition merge_version (i : name) : nat := match i with a => 2 | b => 1 end.
  Definition live (x : number) (n : nat) : bool :=
    n <? merge_version (match x with row_1 => a | row_2 => b end).

  Definition two_merges : history := {|
    transaction := name; predicate := unit; row := number; file := unit;
    transactions := a :: b :: nil;
    writer _ := true;
    version := merge_version;
    read _ := 0;
    wrote := deletes;
    created _ _ := false;
    matches i _ x n := (both || deletes i x) && live x n;
    definition _ := false;
    holds _ := live;
    read_file _ _ := true;
    removes _ _ := true;
    adds_meets_reads _ _ := false;
    metadata_clashes _ _ := false;
    Aborted _ := false; Blind _ := false; NoData _ := false; ChangesData _ := true;
    Empty _ := false; Meta _ := false; Marked _ := false; Large _ := false; Backfill _ := false;
    Default _ := false
  |}.

  Definition their_vectors : vectors two_merges := Build_vectors two_merges
    (* gives_vector *) (fun _ _ => true)
    (* marks *) (fun i _ x => deletes i x)
    (* adds *) (fun _ _ => true)
    (* could_match *) (fun _ _ => true)
    (* records *) (fun i _ x => both || deletes i x).
End TwoMerges.

Lemma two_merges_satisfy_premises both :
  premises (two_merges both) (their_vectors both) /\
  row_level_rule (two_merges both) (their_vectors both).
Proof.
  destruct both; (split; [open_all | split; open_all]);
    repeat match goal with |- _ /\ _ => split end.
  all: decide_table.
Qed.

(* The rule alone admits a write skew at Serializable: no serial order has these dependencies. *)
Theorem row_level_rule_is_not_enough : exists h v,
  premises h v /\ row_level_rule h v /\ ~ log_serializable h /\ ~ write_serializable h.
Proof.
  exists (two_merges true), (their_vectors true).
  split; [apply two_merges_satisfy_premises | split; [apply two_merges_satisfy_premises |]].
  apply and_comm, (writers_in_a_cycle (two_merges true) a).
  apply t_trans with b; apply t_step; (split; [easy | split; [right; right | easy]]);
    (split; [discriminate |]); [exists row_2, tt | exists row_1, tt];
    left; unfold first, writes; decide_table.
Qed.

(* The repair aborts it. Where each reads its own row only, the repaired rule admits two deletions
   in one file: it is not empty. *)
Theorem the_repair_tells_them_apart :
  ~ deleted_rows_are_compared (two_merges true) (their_vectors true) /\
  row_level_rule_repaired (two_merges false) (their_vectors false) /\
  exists f, reconciled (two_merges false) (their_vectors false) b a f.
Proof.
  split; [| split; [split; [apply two_merges_satisfy_premises | open_all; decide_table] |]].
  - intro compared; destruct (compared b a tt row_2); open_all; decide_table.
  - exists tt; open_all; decide_table.
Qed.

Print Assumptions row_level_rule_is_not_enough.
Print Assumptions the_repair_tells_them_apart.
