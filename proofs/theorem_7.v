(* Theorem 7. docs/semantics.md, section 3.4:

   So two writers never violate write-serializable, if their reads are tracked.

   Premises: those of Theorem 6, [committed], and that there are no writers but two. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables theorem_6.

Definition two_writers (h : history) : Prop :=
  exists a b, forall i, writer h i -> i = a \/ i = b.

Theorem theorem_7 (h : history) :
  finite h -> snapshot h -> put_if_absent h -> committed h -> definitions h -> metadata h ->
  read_files h -> read_predicates h -> files h -> rows h -> read_before_written h -> born_once h ->
  blind h -> compactions h -> backfills h ->
  two_writers h ->
  delta_write_serializable h -> write_serializable h.
Proof.
  intros; split; [intros i j ab e; now apply aborted_write_nothing in e | intros i cycle].
  destruct (theorem_6 h) with (i := i) as [k [a [x found]]]; trivial.
  destruct found as [_ [wk [wa [wx [unread [seen [lt [[ne _] e]]]]]]]].
  match goal with two : two_writers h |- _ => destruct two as [one [other only]] end.
  assert (k <> x) by (destruct e as [e | e]; apply e).
  assert (a <> x) by (intros ->; lia).
  destruct (only k wk), (only a wa), (only x wx); congruence.
Qed.

Print Assumptions theorem_7.
