(* Corollary 6b. docs/semantics.md, section 3.4:

   A check that needs only the log would always keep the promise. It counts the files of a blind
   append I if some other commit C has read a version that contains I, and C itself was not seen. C
   is neither a blind append nor a compaction. The check is the text of
   specs/protocols/delta-write-serializable-repaired.cat.

   Premises: those of Theorem 6, and [committed]. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables theorem_6.

Section Check.
  Variable h : history.
  Implicit Types i j k : transaction h.

  Definition bridged i j : Prop :=
    exists k, (writer h i /\ version h i <= read h k) /\ ~ (Blind h k \/ Downgraded h k) /\
      unseen h k j.

  (* [added & bridged] counts for a loser, whatever the winner is. *)
  Record delta_write_serializable_repaired : Prop := {
    as_before : delta_write_serializable h;
    ConcurrentAppendException_bridged : forall i j, added h i j -> bridged i j -> Downgraded h j
  }.
End Check.

Section Proof.
  Variable h : history.
  Hypothesis Finite : finite h.
  Hypothesis Snapshot : snapshot h.
  Hypothesis Put_if_absent : put_if_absent h.
  Hypothesis Committed : committed h.
  Hypothesis Definitions : definitions h.
  Hypothesis Metadata : metadata h.
  Hypothesis Read_files : read_files h.
  Hypothesis Read_predicates : read_predicates h.
  Hypothesis Files : files h.
  Hypothesis Rows : rows h.
  Hypothesis Read_before_written : read_before_written h.
  Hypothesis Born_once : born_once h.
  Hypothesis Is_blind : blind h.
  Hypothesis Compactions : compactions h.
  Hypothesis Backfills : backfills h.
  Hypothesis Check : delta_write_serializable_repaired h.

  Let Before : delta_write_serializable h := as_before h Check.

  (* A blind append has made the row that a reader misses: it was not there before. *)
  Lemma missed_append_is_added i a : Blind h i -> rw h a i -> unseen h i a ->
    added h i a /\ ~ Downgraded h a.
  Proof.
    intros b [ne [x [p e]]] u.
    assert (sees : forall y, matches h a p y (read h a) -> writes h i y -> False)
      by (intros y m w; exact (as_it_was_read h Definitions Read_files Files Before i a p y m w u)).
    destruct e as [[m [w _]] | [_ [w c]]]; [now destruct (sees x) |].
    destruct (matches h a p x (version h i)) eqn:after.
    { destruct (missed_write_is_added h Definitions Read_predicates Compactions Backfills
        Before i a p x u w) as [ad [live _]]; [now rewrite after | now split]. }
    destruct (matches h a p x (version h i - 1)) eqn:before; [exfalso; clear c | congruence].
    assert (d : ~ definition h x)
      by (intro d; exact (as_it_was_defined h Definitions Before i a x d w u)).
    assert (made : creates h i x)
      by exact (blind_appends_create h Read_before_written Is_blind i p x b d w).
    destruct (matches h a p x (read h a)) eqn:m; [apply (sees x); trivial; now rewrite m |].
    destruct (Rows a p x (version h i - 1)) as [k [wk [_ [le _]]]]; trivial.
    - destruct u as [_ unread].
      destruct (Nat.eq_dec (read h a) (version h i - 1)) as [same |]; [| lia].
      rewrite <- same in before; congruence.
    - now rewrite m.
    - assert (other : i <> k).
      { intros ->; destruct u as [_ unread]; lia. }
      specialize (Born_once i k x made wk other); lia.
  Qed.

  Lemma no_bridge i a x : ~ bridge h i a x.
  Proof.
    intros [b [wi [wa [wx [unread [seen [lt [e e']]]]]]]].
    assert (u : unseen h i a) by (repeat split; trivial; specialize (Snapshot x wx); lia).
    destruct (missed_append_is_added i a b e u) as [ad live]; apply live.
    apply (ConcurrentAppendException_bridged h Check i a ad); exists x; split; [now split | split].
    - assert (d : forall r, writes h i r -> ~ definition h r)
        by (intros r w d; exact (as_it_was_defined h Definitions Before i a r d w u)).
      assert (row : exists r p, writes h i r /\ ~ definition h r /\
          (writes h x r \/ exists n, matches h x p r n)).
      { destruct e as [_ [_ [q _]]].
        destruct e' as [[_ [r [p [[m [w _]] | [_ [w c]]]]]] | [_ [r [w [w' _]]]]].
        - exists r, p; split; [exact w | split; [exact (d r w) | right; now exists (read h x)]].
        - exists r, p; split; [exact w | split; [exact (d r w) | right]].
          destruct (matches h x p r (version h i)) eqn:m; [exists (version h i); now rewrite m |].
          exists (version h i - 1); destruct (matches h x p r (version h i - 1)); congruence.
        - exists r, q; split; [exact w | split; [exact (d r w) | now left]]. }
      destruct row as [r [p [w [dr touched]]]]; intros [bx | down].
      + destruct touched as [w' | [n m]].
        * assert (made := blind_appends_create h Read_before_written Is_blind x p r bx dr w').
          assert (ne : x <> i) by (intros ->; specialize (Snapshot i wi); lia).
          specialize (Born_once x i r made w ne); specialize (Snapshot x wx); lia.
        * destruct (Is_blind x p r n bx) as [none _]; now apply none.
      + destruct down as [[nd nm] rest].
        assert (full : ~ Empty h x) by (intro em; now apply (no_op h Before x wx)).
        destruct touched as [w' | [n m]].
        * now destruct (Compactions x wx nd nm full p r 0).
        * destruct (Compactions x wx nd nm full p r n) as [none _]; now apply none.
    - specialize (Snapshot x wx); repeat split; trivial; lia.
  Qed.

  Lemma keeps_promise : write_serializable h.
  Proof.
    split.
    - intros i j ab e; now apply aborted_write_nothing in e.
    - intros i cycle; destruct (theorem_6 h) with (i := i) as [k [a [x found]]]; trivial.
      now apply (no_bridge k a x).
  Qed.
End Proof.

Theorem corollary_6b (h : history) :
  finite h -> snapshot h -> put_if_absent h -> committed h -> definitions h -> metadata h ->
  read_files h -> read_predicates h -> files h -> rows h -> read_before_written h -> born_once h ->
  blind h -> compactions h -> backfills h ->
  delta_write_serializable_repaired h -> write_serializable h.
Proof. exact (keeps_promise h). Qed.

Print Assumptions corollary_6b.
