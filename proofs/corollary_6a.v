(* Corollary 6a. docs/semantics.md, section 3.4:

   If no two commits that overlap each other may both read or remove rows of one blind append, then
   WriteSerializable as Delta checks it keeps its promise.

   Premises: those of Theorem 6, [committed], and the condition of the corollary,
   [no_shared_append]. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables theorem_6.

Section Condition.
  Variable h : history.
  Implicit Types i a x : transaction h.

  (* Two commits overlap if neither has seen the other. *)
  Definition overlap a x : Prop := read h a < version h x /\ read h x < version h a.

  (* A commit reads, changes or removes, at whatever version, a row that i wrote. *)
  Definition touches_row_of a i : Prop :=
    exists r, writes h i r /\ (writes h a r \/ exists p n, matches h a p r n).

  Definition no_shared_append : Prop :=
    forall i a x, writer h a -> writer h x -> Blind h i -> a <> i -> x <> i -> overlap a x ->
    ~ (touches_row_of a i /\ touches_row_of x i).

  Lemma changes_touched i a p r : changed h i a p r -> touches_row_of a i.
  Proof.
    intros [w c]; exists r; split; [exact w | right; exists p].
    destruct (matches h a p r (version h i)) eqn:m; [exists (version h i); now rewrite m |].
    exists (version h i - 1); destruct (matches h a p r (version h i - 1)); [easy | congruence].
  Qed.

  Lemma bridges_share i a x : snapshot h -> bridge h i a x ->
    a <> i /\ x <> i /\ overlap a x /\ touches_row_of a i /\ touches_row_of x i.
  Proof.
    intros snap [_ [_ [_ [wx [unread [seen [lt [e e']]]]]]]].
    specialize (snap x wx); split; [| split; [| split; [split; lia | split]]].
    - now destruct e.
    - destruct e' as [[ne _] | [ne _]]; now apply not_eq_sym.
    - destruct e as [_ [r [p [[m [w _]] | [_ c]]]]]; [| now apply (changes_touched i a p r)].
      exists r; split; [exact w | right; now exists p, (read h a)].
    - destruct e' as [[_ [r [p [[m [w _]] | [_ c]]]]] | [_ [r [w [w' _]]]]].
      + exists r; split; [exact w | right; now exists p, (read h x)].
      + now apply (changes_touched i x p r).
      + exists r; split; [exact w | now left].
  Qed.
End Condition.

Theorem corollary_6a (h : history) :
  finite h -> snapshot h -> put_if_absent h -> committed h -> definitions h -> metadata h ->
  read_files h -> read_predicates h -> files h -> rows h -> read_before_written h -> born_once h ->
  blind h -> compactions h -> backfills h ->
  no_shared_append h ->
  delta_write_serializable h -> write_serializable h.
Proof.
  intros; split; [intros i j ab e; now apply aborted_write_nothing in e | intros i cycle].
  destruct (theorem_6 h) with (i := i) as [k [a [x found]]]; trivial.
  destruct (bridges_share h k a x)  as [ne [ne' [o [t t']]]]; trivial.
  destruct found as [b [_ [wa [wx _]]]].
  match goal with shared : no_shared_append h |- _ => now apply (shared k a x) end.
Qed.

Print Assumptions corollary_6a.
