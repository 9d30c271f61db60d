(* Theorem 6. docs/semantics.md, section 3.4:

   Every history that the check at WriteSerializable admits, and whose writers have a cycle,
   contains a blind append I and commits A and X such that: A read a version before I; X read a
   version that contains I; X committed before A; A -rw-> I; and I -wr-> X or I -ww-> X.

   Premises: those of section [Proof], each with its name in checker/prove/premises.py, and that a
   history is finite. The check is the text of specs/protocols/delta-write-serializable.cat, without
   the axioms that concern no row of the table: protocol-changed, same-transaction. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables.

Section Check.
  Variable h : history.
  Implicit Types i j : transaction h.

  Definition Downgraded i : Prop :=
    (NoData h i /\ ~ Marked h i) /\ ~ (ChangesData h i /\ ~ Default h i).
  Definition Unlogged i : Prop := Empty h i /\ Downgraded i.

  Record delta_write_serializable : Prop := {
    no_op : forall i, writer h i -> ~ Unlogged i;
    ConcurrentWriteException : forall i j, ~ overtaken h i j;
    MetadataChangedException : forall i j, metadata_changed h i j -> Unlogged j;
    ConcurrentAppendException : forall i j, ~ Blind h i -> added h i j -> Downgraded j;
    ConcurrentAppendException_2 : forall i j,
      added h i j -> Meta h j \/ Default h j -> Downgraded j;
    ConcurrentDeleteReadException : forall i j, deleted_read h i j -> Unlogged j;
    ConcurrentDeleteDeleteException : forall i j, deleted_deleted h i j -> Unlogged j
  }.

  (* What the theorem finds. *)
  Definition bridge i a x : Prop :=
    Blind h i /\ writer h i /\ writer h a /\ writer h x /\
    read h a < version h i /\ version h i <= read h x /\ version h x < version h a /\
    rw h a i /\ (wr h i x \/ ww h i x).
End Check.

Section Proof.
  Variable h : history.
  Hypothesis Finite : finite h.
  Hypothesis Snapshot : snapshot h.
  Hypothesis Put_if_absent : put_if_absent h.
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
  Hypothesis Check : delta_write_serializable h.

  (* Checked losers: a writer is never dropped as a no-op. *)
  Lemma not_metadata_changed i j : ~ metadata_changed h i j.
  Proof.
    intro c; apply (no_op h Check j); [now destruct c as [[[_ [w _]] _] _] |].
    now apply (MetadataChangedException h Check) in c.
  Qed.

  Lemma as_it_was_defined i j x : definition h x -> writes h i x -> ~ unseen h i j.
  Proof.
    intros d w u; apply (not_metadata_changed i j); split; [exact u | right].
    eapply Definitions; eauto.
  Qed.

  Lemma not_large i j : unseen h i j -> ~ Large h j.
  Proof. intros u l; apply (ConcurrentWriteException h Check i j); now split. Qed.

  Lemma as_it_was_read i j p x :
    matches h j p x (read h j) -> writes h i x -> ~ unseen h i j.
  Proof.
    apply tables.as_it_was_read; trivial.
    - exact as_it_was_defined.
    - exact not_large.
    - intros k l c; apply (no_op h Check l); [apply c |].
      exact (ConcurrentDeleteReadException h Check k l c).
    - intros k l c; apply (no_op h Check l); [apply c |].
      exact (ConcurrentDeleteDeleteException h Check k l c).
  Qed.

  Lemma backward_is_unseen i j : writers_depend h j i -> version h i < version h j ->
    rw h j i /\ unseen h i j.
  Proof.
    intros [wj [[[ne [x [p [[_ [_ [le _]]] | [le _]]]]] | [[ne [x [_ [_ [lt _]]]]] | e]] wi]] back;
      try (specialize (Snapshot _ wi); lia).
    split; [exact e |]; repeat split; trivial.
    destruct e as [_ [x [p [[_ [_ [lt _]]] | [lt _]]]]]; exact lt.
  Qed.

  (* A write that the reader of the row does not see adds a file that meets its reads. *)
  Lemma missed_write_is_added i j p x :
    unseen h i j -> writes h i x -> matches h j p x (version h i) ->
    added h i j /\ ~ Downgraded h j /\ ~ definition h x.
  Proof.
    intros u w m.
    assert (d : ~ definition h x) by (intro d; now apply (as_it_was_defined i j x)).
    assert (t : tracked h j x) by (split; [apply u | split; [exact (not_large i j u) | exact d]]).
    assert (lt : version h i < version h j) by apply u; assert (wj := proj1 t).
    split; [| split; [| exact d]].
    - split; [| split; [exact u | split]].
      + intro b; now destruct (Backfills i (proj1 w) b p x (version h i)).
      + apply (Read_predicates i j p x); trivial; intros ->; lia.
      + intro b; destruct (Backfills j wj b p x (version h i)) as [none _]; now apply none.
    - intros [[nd nm] rest].
      assert (ne : ~ Empty h j) by (intro e; now apply (no_op h Check j wj)).
      destruct (Compactions j wj nd nm ne p x (version h i)) as [none _]; now apply none.
  Qed.

  (* So its writer appended blindly, and the reader is checked at WriteSerializable. *)
  Lemma missed_write_is_blind i j p x :
    unseen h i j -> writes h i x -> matches h j p x (version h i) ->
    Blind h i /\ ~ definition h x /\ ~ (Meta h j \/ Default h j).
  Proof.
    intros u w m; destruct (missed_write_is_added i j p x u w m) as [a [live d]].
    repeat split; trivial.
    - destruct (Blind h i) eqn:b; [reflexivity |]; exfalso.
      apply live, (ConcurrentAppendException h Check i); [now rewrite b | exact a].
    - intro s; now apply live, (ConcurrentAppendException_2 h Check i).
  Qed.

  Lemma blind_appends_create i (p : predicate h) x :
    Blind h i -> ~ definition h x -> writes h i x -> creates h i x.
  Proof.
    intros b d w; destruct (created h i x) eqn:c; [split; [exact w | now rewrite c] |]; exfalso.
    destruct (Read_before_written i x w) as [q m].
    - intros [_ c']; now rewrite c in c'.
    - apply (Is_blind i p x 0 b).
    - destruct (Is_blind i q x (read h i) b) as [none _]; now apply none.
  Qed.

  Lemma created_rows_are_seen i j x : creates h i x -> writes h j x -> i <> j ->
    version h i < version h j /\ version h i <= read h j.
  Proof.
    intros c w ne; assert (lt := Born_once i j x c w ne); split; [exact lt |].
    destruct (le_lt_dec (version h i) (read h j)) as [le | unread]; [exact le | exfalso].
    assert (u : unseen h i j) by (destruct c as [[wi _] _], w as [wj _]; repeat split; trivial).
    destruct (Read_before_written j x w) as [p m].
    - intro c'; assert (gt := Born_once j i x c' (proj1 c) (not_eq_sym ne)); lia.
    - exact (not_large i j u).
    - exact (as_it_was_read i j p x m (proj1 c) u).
  Qed.

  (* There is a next writer: a history is finite. *)
  Lemma next_writer x n : forall bound j, version h j <= bound -> writes h j x -> n < version h j ->
    exists m, first h m x n /\ version h m <= version h j.
  Proof.
    induction bound as [| bound IH]; intros j le w lt; [lia |].
    set (earlier := fun m =>
      writer h m && wrote h m x && (n <? version h m) && (version h m <? version h j)).
    destruct (existsb earlier (transactions h)) eqn:e.
    - apply existsb_exists in e as [m [_ found]]; unfold earlier in found.
      apply andb_prop in found as [found before]; apply andb_prop in found as [found after].
      apply andb_prop in found as [wm wrote_x].
      apply Nat.ltb_lt in before; apply Nat.ltb_lt in after.
      assert (le' : version h m <= bound) by lia.
      destruct (IH m le' (conj wm wrote_x) after) as [k [first_k le_k]].
      exists k; split; [exact first_k | lia].
    - exists j; repeat split; trivial; try apply w; intros m [[wm wrote_x] [after before]].
      enough (existsb earlier (transactions h) = true) by congruence.
      apply existsb_exists; exists m; split; [apply Finite |]; unfold earlier.
      rewrite wm, wrote_x; apply Nat.ltb_lt in before; apply Nat.ltb_lt in after.
      now rewrite before, after.
  Qed.

  (* An edge back in the log leads to a blind append, or past one that a later commit rewrote. *)
  Lemma backward_edge a i : rw h a i -> unseen h i a ->
    (exists x, bridge h i a x) \/ (exists k x, bridge h k a x) \/
    (Blind h i /\ inhabited (predicate h) /\ ~ (Meta h a \/ Default h a)).
  Proof.
    intros [ne [x [p [[m [w _]] | [unread [w c]]]]]] u.
    { exfalso; eapply as_it_was_read; eauto. }
    destruct (matches h a p x (read h a)) eqn:mr.
    { exfalso; eapply as_it_was_read; eauto; now rewrite mr. }
    destruct (matches h a p x (version h i)) eqn:after.
    { destruct (missed_write_is_blind i a p x u w) as [b [_ s]]; [now rewrite after |].
      right; right; repeat split; trivial. }
    destruct (matches h a p x (version h i - 1)) eqn:before; [clear c | congruence].
    assert (later : forall n, matches h a p x n = true -> read h a <= n -> read h a < n).
    { intros n mn le; destruct (Nat.eq_dec (read h a) n) as [<- | ?]; [congruence | lia]. }
    assert (not_read : ~ matches h a p x (read h a)) by now rewrite mr.
    destruct (Rows a p x (version h i - 1)) as [k [wk [lo [hi mk]]]]; trivial.
    { apply later; [exact before | lia]. }
    assert (uk : unseen h k a).
    { destruct u as [[_ [wa lt]] _], wk as [wk _]; repeat split; trivial; lia. }
    destruct (missed_write_is_blind k a p x uk wk mk) as [bk [d _]].
    assert (ck := blind_appends_create k p x bk d wk).
    destruct (next_writer x (version h k) (version h i) i) as [next [fn le]]; trivial; [lia |].
    assert (kn : k <> next) by (intros ->; destruct fn as [_ [lt _]]; lia).
    destruct (created_rows_are_seen k next x ck (proj1 fn) kn) as [_ seen].
    right; left; exists k, next; unfold bridge.
    repeat split; trivial; try apply wk; try apply uk; try apply fn; try lia.
    - destruct u as [[_ [_ lt]] _]; lia.
    - intros ->; destruct uk as [[_ [_ lt]] _]; lia.
    - exists x, p; right; repeat split; trivial; try apply wk.
      rewrite mk; destruct (matches h a p x (version h k - 1)) eqn:mk'; [exfalso | congruence].
      destruct (Rows a p x (version h k - 1)) as [k' [wk' [_ [hi' _]]]]; trivial.
      { apply later; [exact mk' | lia]. }
      assert (kk : k <> k') by (intros <-; lia).
      specialize (Born_once k k' x ck wk' kk); lia.
    - right; split; [exact kn | exists x; split; [exact wk | exact fn]].
  Qed.

  Lemma depend_on_another i j : writers_depend h i j -> i <> j.
  Proof. now intros [_ [[e | [e | e]] _]]; destruct e. Qed.

  Lemma cycle_has_bridge i : clos_trans _ (writers_depend h) i i -> exists k a x, bridge h k a x.
  Proof.
    intro cycle.
    destruct (highest_on_cycle _ _ (version h) _ cycle) as [a [b [c [ab [bc [le_b le_c]]]]]].
    assert (wa : writer h a) by apply ab; assert (wb : writer h b) by apply bc.
    assert (wc : writer h c) by apply bc.
    assert (differ : version h b <> version h a)
      by (apply Put_if_absent; trivial; now apply not_eq_sym, depend_on_another).
    destruct (backward_is_unseen b a ab) as [e u]; [lia |].
    destruct (backward_edge a b e u) as [[x found] | [[k [x found]] | [blind_b [[q] plain]]]];
      eauto.
    assert (bridged : version h b <= read h c -> wr h b c \/ ww h b c -> bridge h b a c).
    { intros seen edge; unfold bridge; repeat split; trivial; try apply u; try apply e.
      enough (version h c <> version h a) by lia.
      apply Put_if_absent; trivial; intros ->; destruct u as [_ unread]; lia. }
    exists b, a, c; destruct bc as [_ [[bc | [bc | bc]] _]].
    - apply bridged; [| now left].
      now destruct bc as [_ [x [p [[_ [_ [le _]]] | [le _]]]]].
    - apply bridged; [| now right]; destruct bc as [ne [x [w first_c]]].
      apply (created_rows_are_seen b c x); trivial; [| apply first_c].
      apply blind_appends_create; trivial; intro d; now apply (as_it_was_defined b a x).
    - exfalso; destruct bc as [ne [x [p overwritten]]].
      assert (found : writes h c x /\ definition h x /\ read h b < version h c).
      { destruct (definition h x) eqn:d.
        - now destruct overwritten as [[_ [w [lt _]]] | [lt [w _]]]; split.
        - exfalso; assert (none : forall n, matches h b p x n = false).
          { intro n; destruct (matches h b p x n) eqn:m; trivial; exfalso.
            destruct (Is_blind b p x n blind_b) as [none _].
            apply none; split; [exact m | rewrite d; discriminate]. }
          destruct overwritten as [[m _] | [_ [_ changes]]]; [now rewrite none in m |].
          now rewrite !none in changes. }
      destruct found as [w [d lt]].
      assert (c_after_b : version h b < version h c).
      { destruct (le_lt_dec (version h c) (version h b)) as [le | ?]; [exfalso | trivial].
        assert (version h b <> version h c) by now apply Put_if_absent.
        apply (as_it_was_defined c b x); trivial; repeat split; trivial; lia. }
      destruct (Nat.eq_dec (version h c) (version h a)) as [same | other].
      + destruct (Meta h a) eqn:meta; [now apply plain; left |].
        apply (Put_if_absent c a); trivial; intros ->.
        now rewrite (Metadata a x d w) in meta.
      + apply (as_it_was_defined c a x); trivial; destruct u as [_ unread].
        repeat split; trivial; lia.
  Qed.
End Proof.

Theorem theorem_6 (h : history) :
  finite h -> snapshot h -> put_if_absent h -> definitions h -> metadata h -> read_files h ->
  read_predicates h -> files h -> rows h -> read_before_written h -> born_once h -> blind h ->
  compactions h -> backfills h ->
  delta_write_serializable h ->
  forall i, clos_trans _ (writers_depend h) i i -> exists k a x, bridge h k a x.
Proof. exact (cycle_has_bridge h). Qed.

Print Assumptions theorem_6.
