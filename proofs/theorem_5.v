(* Theorem 5. docs/semantics.md, section 3.4:

   Suppose that every row that a writer read lies in a file that it recorded, and that every file
   with such a row matches a predicate that it recorded. Then Delta's check at Serializable leaves
   no rw that points backwards in the log: log-serializable, for any number of transactions.

   Premises: those of the theorem, each with its name in checker/prove/premises.py. The check is the
   text of specs/protocols/delta-serializable.cat, without the axioms that concern no row of the
   table: protocol-changed, same-transaction. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables.

Section Check.
  Variable h : history.
  Implicit Types i j : transaction h.

  Definition Downgraded i : Prop := NoData h i /\ ~ Marked h i.
  Definition Unlogged i : Prop := Empty h i /\ Downgraded i.

  Record delta_serializable : Prop := {
    no_op : forall i, writer h i -> ~ Unlogged i;
    ConcurrentWriteException : forall i j, ~ overtaken h i j;
    MetadataChangedException : forall i j, metadata_changed h i j -> Unlogged j;
    ConcurrentAppendException : forall i j, added h i j -> Downgraded j;
    ConcurrentDeleteReadException : forall i j, deleted_read h i j -> Unlogged j;
    ConcurrentDeleteDeleteException : forall i j, deleted_deleted h i j -> Unlogged j
  }.
End Check.

Section Proof.
  Variable h : history.
  Hypothesis Snapshot : snapshot h.
  Hypothesis Put_if_absent : put_if_absent h.
  Hypothesis Committed : committed h.
  Hypothesis Definitions : definitions h.
  Hypothesis Read_files : read_files h.
  Hypothesis Read_predicates : read_predicates h.
  Hypothesis Files : files h.
  Hypothesis Rows : rows h.
  Hypothesis Compactions : compactions h.
  Hypothesis Backfills : backfills h.
  Hypothesis Check : delta_serializable h.

  Lemma as_it_was_defined i j x : definition h x -> writes h i x -> ~ unseen h i j.
  Proof.
    intros d w u; apply (no_op h Check j); [apply u |].
    apply (MetadataChangedException h Check i j); split; [exact u | right].
    now apply (Definitions i j x).
  Qed.

  Lemma not_large i j : unseen h i j -> ~ Large h j.
  Proof. intros u l; now apply (ConcurrentWriteException h Check i j). Qed.

  Lemma sees_matches i j p x :
    matches h j p x (version h i) -> writes h i x -> ~ unseen h i j.
  Proof.
    intros m w u.
    assert (d : ~ definition h x) by (intro d; now apply (as_it_was_defined i j x)).
    assert (t : tracked h j x) by (split; [apply u | split; [exact (not_large i j u) | exact d]]).
    assert (lt : version h i < version h j) by apply u.
    assert (a : added h i j).
    { split; [| split; [exact u | split]].
      - intro b; now destruct (Backfills i (proj1 w) b p x (version h i)).
      - apply (Read_predicates i j p x); trivial; intros ->; lia.
      - intro b; destruct (Backfills j (proj1 t) b p x (version h i)) as [none _].
        now apply none. }
    destruct (ConcurrentAppendException h Check i j a) as [nd nm].
    assert (ne : ~ Empty h j) by (intro e; now apply (no_op h Check j (proj1 t))).
    destruct (Compactions j (proj1 t) nd nm ne p x (version h i)) as [none _]; now apply none.
  Qed.

  Lemma keeps_log_order : log_serializable h.
  Proof.
    apply log_order; trivial; [| exact sees_matches].
    apply as_it_was_read; trivial.
    - exact as_it_was_defined.
    - exact not_large.
    - intros k l c; apply (no_op h Check l); [apply c |].
      exact (ConcurrentDeleteReadException h Check k l c).
    - intros k l c; apply (no_op h Check l); [apply c |].
      exact (ConcurrentDeleteDeleteException h Check k l c).
  Qed.
End Proof.

Theorem theorem_5 (h : history) :
  snapshot h -> put_if_absent h -> committed h -> definitions h -> read_files h ->
  read_predicates h -> files h -> rows h -> compactions h -> backfills h ->
  delta_serializable h -> log_serializable h.
Proof. exact (keeps_log_order h). Qed.

Print Assumptions theorem_5.
