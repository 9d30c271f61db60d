(* Histories of one table with a log: vocabulary, dependencies, premises, and facts about cycles.

   The other scripts of this folder build on this one. A name means what it means in
   checker/prove/formula_semantics.py (vocabulary, dependencies) and checker/prove/premises.py
   (premises, "-" written as "_"); docs/semantics.md, 1 and 3, has the definitions in words.

   Files are paths. Versions are numbers; the first state of the table is version 0. A transaction
   that only reads is no writer, and its [version] means nothing. *)

From Coq Require Import Arith Lia List Bool Relations.

Coercion is_true : bool >-> Sortclass.

Record history := {
  transaction : Type;
  predicate : Type;
  row : Type;
  file : Type;
  transactions : list transaction;
  writer : transaction -> bool;
  version : transaction -> nat;
  read : transaction -> nat;
  wrote : transaction -> row -> bool;
  created : transaction -> row -> bool;
  matches : transaction -> predicate -> row -> nat -> bool;
  definition : row -> bool;
  holds : file -> row -> nat -> bool;
  read_file : transaction -> file -> bool;
  removes : transaction -> file -> bool;
  adds_meets_reads : transaction -> transaction -> bool;
  metadata_clashes : transaction -> transaction -> bool;
  Aborted : transaction -> bool;
  Blind : transaction -> bool;
  NoData : transaction -> bool;
  ChangesData : transaction -> bool;
  Empty : transaction -> bool;
  Meta : transaction -> bool;
  Marked : transaction -> bool;
  Large : transaction -> bool;
  Backfill : transaction -> bool;
  Default : transaction -> bool
}.

Section Vocabulary.
  Variable h : history.
  Implicit Types (i j k m : transaction h) (p : predicate h) (x : row h) (f : file h) (n : nat).

  Definition writes i x : Prop := writer h i /\ wrote h i x.
  Definition creates i x : Prop := writes i x /\ created h i x.

  (* The first writer of a row after a version, and the last one up to a version. *)
  Definition first k x n : Prop :=
    writes k x /\ n < version h k /\
    forall m, ~ (writes m x /\ n < version h m /\ version h m < version h k).
  Definition last k x n : Prop :=
    writes k x /\ version h k <= n /\
    forall m, ~ (writes m x /\ version h k < version h m /\ version h m <= n).

  (* i's write changed whether the row matches j's predicate. *)
  Definition changed i j p x : Prop :=
    writes i x /\ matches h j p x (version h i - 1) <> matches h j p x (version h i).

  Definition log i j : Prop := writer h i /\ writer h j /\ version h i < version h j.
  Definition unseen i j : Prop := log i j /\ read h j < version h i.

  (* Dependencies, section 1 of the page. *)
  Definition ww i j : Prop := i <> j /\ exists x, writes i x /\ first j x (version h i).
  Definition wr i j : Prop :=
    i <> j /\ exists x p,
      (matches h j p x (read h j) /\ last i x (read h j)) \/
      (version h i <= read h j /\ changed i j p x).
  Definition rw j i : Prop :=
    j <> i /\ exists x p,
      (matches h j p x (read h j) /\ first i x (read h j)) \/
      (read h j < version h i /\ changed i j p x).

  (* What the checks compare, specs/delta.cat. *)
  Definition removes_meets_reads i j : Prop := exists f, removes h i f /\ read_file h j f.
  Definition removes_meets_removes i j : Prop := exists f, removes h i f /\ removes h j f.
  Definition added i j : Prop :=
    ~ Backfill h i /\ unseen i j /\ adds_meets_reads h i j /\ ~ Backfill h j.
  Definition deleted_read i j : Prop := unseen i j /\ removes_meets_reads i j.
  Definition deleted_deleted i j : Prop := unseen i j /\ removes_meets_removes i j.
  Definition overtaken i j : Prop := unseen i j /\ Large h j.
  Definition metadata_changed i j : Prop :=
    unseen i j /\ ((Meta h i /\ Meta h j) \/ metadata_clashes h i j).

  (* Levels. *)
  Definition writers_depend i j : Prop :=
    writer h i /\ (wr i j \/ ww i j \/ rw i j) /\ writer h j.
  Definition all_depend i j : Prop := wr i j \/ ww i j \/ rw i j \/ log i j.
  Definition acyclic (r : relation (transaction h)) : Prop :=
    forall i, ~ clos_trans _ r i i.
  Definition write_serializable : Prop :=
    (forall i j, Aborted h i -> wr i j -> ~ writer h j) /\ acyclic writers_depend.
  Definition log_serializable : Prop :=
    (forall i j, Aborted h i -> ~ wr i j) /\ acyclic all_depend.

  (* A history is finite. *)
  Definition finite : Prop := forall i, In i (transactions h).

  (* Premises, checker/prove/premises.py. *)
  Definition snapshot : Prop := forall j, writer h j -> read h j < version h j.
  Definition put_if_absent : Prop :=
    forall i j, writer h i -> writer h j -> i <> j -> version h i <> version h j.
  Definition committed : Prop := forall i, writer h i -> ~ Aborted h i.
  Definition tracked j x : Prop := writer h j /\ ~ Large h j /\ ~ definition h x.
  Definition read_files : Prop :=
    forall j p x, tracked j x -> matches h j p x (read h j) ->
    exists f, holds h f x (read h j) /\ (read_file h j f \/ removes h j f).
  Definition read_predicates : Prop :=
    forall i j p x, tracked j x -> i <> j -> writes i x -> matches h j p x (version h i) ->
    adds_meets_reads h i j.
  Definition files : Prop :=
    forall f x n i, holds h f x n -> writes i x -> n < version h i ->
    exists k, writer h k /\ removes h k f /\ n < version h k /\ version h k <= version h i.
  Definition rows : Prop :=
    forall j p x n, read h j < n -> matches h j p x n -> ~ matches h j p x (read h j) ->
    exists k, writes k x /\ read h j < version h k /\ version h k <= n /\
      matches h j p x (version h k).
  Definition read_before_written : Prop :=
    forall j x, writes j x -> ~ creates j x -> ~ Large h j ->
    exists p, matches h j p x (read h j).
  Definition born_once : Prop :=
    forall i j x, creates i x -> writes j x -> i <> j -> version h i < version h j.
  Definition blind : Prop :=
    forall j p x n, Blind h j -> ~ (matches h j p x n /\ ~ definition h x) /\ ~ Large h j.
  (* A writer that reads and writes no row. *)
  Definition reads_and_writes_none j : Prop :=
    forall p x n, ~ (matches h j p x n /\ ~ definition h x) /\ ~ writes j x.
  Definition compactions : Prop :=
    forall j, writer h j -> NoData h j -> ~ Marked h j -> ~ Empty h j -> reads_and_writes_none j.
  Definition backfills : Prop :=
    forall j, writer h j -> Backfill h j -> reads_and_writes_none j.
  Definition definitions : Prop :=
    forall i j x, definition h x -> writes i x -> unseen i j -> metadata_clashes h i j.
  Definition metadata : Prop := forall i x, definition h x -> writes i x -> Meta h i.
End Vocabulary.

(* A cycle has a member that no other member exceeds: it can be walked from there, and back. *)
Section Cycles.
  Variables (A : Type) (r : relation A) (position : A -> nat).

  Definition below (m : A) : relation A :=
    fun a b => r a b /\ position a <= position m /\ position b <= position m.

  Lemma below_mono m m' : position m <= position m' ->
    forall a b, clos_refl_trans _ (below m) a b -> clos_refl_trans _ (below m') a b.
  Proof.
    intros le a b walk; induction walk as [a b [edge [la lb]] | a | a b c _ IH1 _ IH2].
    - apply rt_step; repeat split; trivial; lia.
    - apply rt_refl.
    - eapply rt_trans; eauto.
  Qed.

  Lemma walk_on (s : relation A) a b c :
    clos_trans _ s a b -> clos_refl_trans _ s b c -> clos_trans _ s a c.
  Proof.
    intros walk rest; apply clos_rt_rtn1 in rest; induction rest; trivial.
    eapply t_trans; [eassumption | now apply t_step].
  Qed.

  Lemma highest_on_walk a b : clos_trans _ r a b ->
    exists m, clos_refl_trans _ (below m) a m /\ clos_refl_trans _ (below m) m b /\
      (clos_trans _ (below m) a m \/ clos_trans _ (below m) m b).
  Proof.
    intro walk; induction walk as [a b edge | a c b _ [m [am [mc one]]] _ [m' [cm [mb two]]]].
    - destruct (le_lt_dec (position b) (position a)); [exists a | exists b].
      + assert (below a a b) by (repeat split; trivial; lia).
        repeat split; auto using rt_refl, rt_step, t_step.
      + assert (below b a b) by (repeat split; trivial; lia).
        repeat split; auto using rt_refl, rt_step, t_step.
    - destruct (le_lt_dec (position m') (position m)) as [le | lt]; [exists m | exists m'].
      + assert (rest : clos_refl_trans _ (below m) c b)
          by (eapply rt_trans; eapply below_mono; eauto).
        assert (back : clos_refl_trans _ (below m) m b) by (eapply rt_trans; eauto).
        repeat split; trivial.
        destruct one as [t | t]; [now left | right; eapply walk_on; [exact t | exact rest]].
      + assert (le : position m <= position m') by lia.
        assert (rest : clos_refl_trans _ (below m') a c)
          by (eapply rt_trans; eapply below_mono; eauto).
        assert (there : clos_refl_trans _ (below m') a m') by (eapply rt_trans; eauto).
        repeat split; trivial.
        destruct two as [t | t]; [left; eapply clos_rt_t; [exact rest | exact t] | now right].
  Qed.

  Lemma highest_on_cycle i : clos_trans _ r i i ->
    exists a b c, r a b /\ r b c /\ position b <= position a /\ position c <= position a.
  Proof.
    intros cycle; destruct (highest_on_walk _ _ cycle) as [m [im [mi one]]].
    assert (around : clos_trans _ (below m) m m)
      by (destruct one as [t | t]; [eapply clos_rt_t | eapply walk_on]; eauto).
    apply clos_trans_t1n in around.
    inversion around as [b [edge [_ le]] | b c' [edge [_ le]] rest]; subst.
    - exists m, m, m; auto.
    - inversion rest as [c [edge' [_ le']] | c d [edge' [_ le']] _]; subst; eauto 8.
  Qed.
End Cycles.

(* What Theorem 5, Theorem 6 and the row-level rule have in common. *)
Section Steps.
  Variable h : history.

  (* A writer sees each change of a row that it read, if no commit changes the definition of its
     table behind its back, or removes a file that it read or removes. *)
  Section ReadRows.
    Hypothesis Read_files : read_files h.
    Hypothesis Files : files h.
    Hypothesis Defined : forall i j x, definition h x -> writes h i x -> ~ unseen h i j.
    Hypothesis Not_large : forall i j, unseen h i j -> ~ Large h j.
    Hypothesis No_deleted_read : forall i j, ~ deleted_read h i j.
    Hypothesis No_deleted_deleted : forall i j, ~ deleted_deleted h i j.

    Lemma as_it_was_read i j p x :
      matches h j p x (read h j) -> writes h i x -> ~ unseen h i j.
    Proof.
      intros m w u; destruct (definition h x) eqn:d; [now apply (Defined i j x) |].
      assert (t : tracked h j x).
      { split; [apply u | split; [exact (Not_large i j u) | now rewrite d]]. }
      destruct (Read_files _ _ _ t m) as [f [hf or]].
      destruct (Files _ _ _ _ hf w (proj2 u)) as [k [wk [rk [lo hi]]]].
      assert (uk : unseen h k j).
      { destruct u as [[_ [wj lt]] _]; repeat split; trivial; lia. }
      destruct or as [r | r].
      - apply (No_deleted_read k j); split; [exact uk | now exists f].
      - apply (No_deleted_deleted k j); split; [exact uk | now exists f].
    Qed.
  End ReadRows.

  Lemma aborted_write_nothing i j : committed h -> Aborted h i -> ~ wr h i j.
  Proof.
    intros done ab e; enough (writer h i) by now apply (done i).
    now destruct e as [_ [x [p [[_ [[w _] _]] | [_ [[w _] _]]]]]].
  Qed.

  (* If a writer sees each change of what it read, no dependency points backwards in the log. *)
  Section LogOrder.
    Hypothesis Snapshot : snapshot h.
    Hypothesis Put_if_absent : put_if_absent h.
    Hypothesis Committed : committed h.
    Hypothesis Rows : rows h.
    Hypothesis Sees_changes : forall i j p x,
      matches h j p x (read h j) -> writes h i x -> ~ unseen h i j.
    Hypothesis Sees_matches : forall i j p x,
      matches h j p x (version h i) -> writes h i x -> ~ unseen h i j.

    Lemma no_rw_to_unseen i j : rw h j i -> ~ unseen h i j.
    Proof.
      intros [_ [x [p [[m [w _]] | [unread [w c]]]]]] u; [now apply (Sees_changes i j p x) |].
      destruct (matches h j p x (version h i)) eqn:after.
      { apply (Sees_matches i j p x); trivial; now rewrite after. }
      destruct (matches h j p x (version h i - 1)) eqn:before; [clear c | congruence].
      destruct (matches h j p x (read h j)) eqn:m.
      { apply (Sees_changes i j p x); trivial; now rewrite m. }
      destruct (Rows j p x (version h i - 1)) as [k [wk [lo [hi mk]]]]; trivial.
      - destruct (Nat.eq_dec (read h j) (version h i - 1)) as [same | ?]; [| lia].
        rewrite <- same in before; congruence.
      - now rewrite m.
      - apply (Sees_matches k j p x); trivial.
        destruct u as [[_ [wj lt]] _]; repeat split; trivial; try apply wk; lia.
    Qed.

    Definition log_position (i : transaction h) : nat :=
      if writer h i then 2 * version h i else 2 * read h i + 1.

    Lemma edges_ascend i j : all_depend h i j -> log_position i < log_position j.
    Proof.
      unfold log_position; intros [e | [e | [e | e]]].
      - assert (seen : writer h i /\ version h i <= read h j)
          by (destruct e as [_ [x [p [[_ [[w _] [le _]]] | [le [[w _] _]]]]]]; now split).
        destruct seen as [w le]; rewrite w; destruct (writer h j) eqn:wj; [| lia].
        specialize (Snapshot j wj); lia.
      - destruct e as [_ [x [[w _] [[w' _] [lt _]]]]]; rewrite w, w'; lia.
      - assert (missed : writer h j /\ read h i < version h j /\ i <> j)
          by (destruct e as [ne [x [p [[_ [[w _] [lt _]]] | [lt [[w _] _]]]]]]; now repeat split).
        destruct missed as [w [lt ne]]; rewrite w; destruct (writer h i) eqn:wi; [| lia].
        assert (apart := Put_if_absent i j wi w ne).
        destruct (le_lt_dec (version h i) (version h j)) as [le | back]; [lia | exfalso].
        apply (no_rw_to_unseen j i e); repeat split; trivial.
      - destruct e as [w [w' lt]]; rewrite w, w'; lia.
    Qed.

    Lemma log_order : log_serializable h.
    Proof.
      split.
      - now intros i j; apply aborted_write_nothing.
      - intros i cycle; enough (forall a b, clos_trans _ (all_depend h) a b ->
          log_position a < log_position b) as up by (specialize (up i i cycle); lia).
        intros a b walk; induction walk as [a b e | a b c _ ? _ ?]; [now apply edges_ascend | lia].
    Qed.
  End LogOrder.
End Steps.

(* Both levels forbid a history in which two writers depend on each other. *)
Lemma writers_in_a_cycle (h : history) i : clos_trans _ (writers_depend h) i i ->
  ~ write_serializable h /\ ~ log_serializable h.
Proof.
  intro cycle; split; intros [_ s]; apply (s i); [exact cycle |].
  enough (all : forall j k, clos_trans _ (writers_depend h) j k -> clos_trans _ (all_depend h) j k)
    by exact (all i i cycle).
  intros j k walk; induction walk as [j k [_ [e _]] | j k l _ IH1 _ IH2].
  - apply t_step; destruct e as [e | [e | e]];
      [left | right; left | right; right; left]; exact e.
  - eapply t_trans; eauto.
Qed.

(* Decide a claim about a history of few transactions, rows and files by looking at all of them.
   Versions after the fourth are as the fourth. *)
Ltac each_member x :=
  let kind := type of x in
  let kind := eval hnf in kind in
  lazymatch kind with
  | nat => idtac
  | _ => lazymatch type of kind with Prop => idtac | _ => destruct x end
  end.

Ltac decide_claim :=
  cbn in *; unfold is_true, not in *;
  lazymatch goal with
  | c : _ /\ _ |- _ => destruct c; decide_claim
  | c : exists _, _ |- _ => let x := fresh "x" in destruct c as [x c]; each_member x; decide_claim
  | |- forall _, _ => let x := fresh "x" in intro x; each_member x; decide_claim
  | |- _ => first [ discriminate | congruence | lia | decide_goal ]
  end
with decide_goal :=
  lazymatch goal with
  | |- exists _, _ =>
      first [ unshelve eexists; [constructor 1 | solve [decide_claim]]
            | unshelve eexists; [constructor 2 | solve [decide_claim]]
            | unshelve eexists; [constructor 3 | solve [decide_claim]] ]
  | |- _ /\ _ => split; decide_claim
  | |- _ => first [ left; solve [decide_claim] | right; solve [decide_claim] | tauto
        | match goal with c : _ \/ _ |- _ => destruct c; decide_claim end
        | match goal with c : _ -> False |- _ => exfalso; apply c; clear c; decide_claim end ]
  end.

Ltac decide_table :=
  repeat match goal with
  | |- forall n : nat, _ => intros [| [| [| [| ?]]]]
  | |- forall x, _ => let x := fresh "x" in intro x; each_member x
  end;
  decide_claim.
