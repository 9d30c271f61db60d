(* No premise of Theorems 5 and 6 can be left out, and all hold together. docs/semantics.md,
   section 3.4.

   For each premise, [model] is a history that violates it and satisfies all others. The check of
   the theorem admits it (at Serializable, or at WriteSerializable), and its writers have a cycle
   without the triple of Theorem 6; for [committed], there is a read from an aborted transaction.
   [finite] is not among them: it stands for the decision whether a row has an earlier writer.

   Where nothing else is said, a has version 2, b has version 1, and both read version 0. a reads
   both rows and deletes row 1; b reads row 1, and deletes or inserts row 2. So a -rw-> b, and
   b -rw-> a. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables.
From Isolitmus Require theorem_5 theorem_6.
Import ListNotations.

Inductive premise :=
  | Snapshot | Put_if_absent | Committed | Definitions | Metadata | Read_files | Read_predicates
  | Files | Rows | Read_before_written | Born_once | Is_blind | Compactions | Backfills.

Definition claim (q : premise) (h : history) : Prop :=
  match q with
  | Snapshot => snapshot h
  | Put_if_absent => put_if_absent h
  | Committed => committed h
  | Definitions => definitions h
  | Metadata => metadata h
  | Read_files => read_files h
  | Read_predicates => read_predicates h
  | Files => files h
  | Rows => rows h
  | Read_before_written => read_before_written h
  | Born_once => born_once h
  | Is_blind => blind h
  | Compactions => compactions h
  | Backfills => backfills h
  end.

Inductive name := a | b | c.
Inductive number := row_1 | row_2.
Inductive path := file_1 | file_2.

Section Model.
  Variable q : premise.

  (* b inserts row 2, which a misses; otherwise b deletes it. *)
  Definition inserts : bool :=
    match q with
    | Committed | Metadata | Read_predicates | Is_blind | Compactions | Backfills => true
    | _ => false
    end.

  (* Row 2 is there at version 1 only; b makes it go at version 2. *)
  Definition comes_and_goes : bool :=
    match q with Rows | Read_before_written | Born_once => true | _ => false end.

  (* c, a blind append, has inserted it. *)
  Definition c_inserts : bool :=
    match q with Read_before_written | Born_once => true | _ => false end.

  Definition model_version (i : name) : nat :=
    match q, i with
    | Snapshot, b => 2
    | Snapshot, _ | Put_if_absent, _ => 1
    | _, c => 1
    | _, b => if comes_and_goes then 2 else 1
    | _, a => if comes_and_goes then 3 else 2
    end.

  Definition live (x : number) (n : nat) : bool :=
    match q, x with
    | Snapshot, row_1 => 1 <=? n
    | Snapshot, row_2 => 2 <=? n
    | _, row_1 => n <? model_version a
    | _, row_2 =>
        if comes_and_goes then n =? 1 else if inserts then 1 <=? n else n <? model_version b
    end.

  Definition model_definition (x : number) : bool :=
    match q, x with Definitions, row_2 | Metadata, row_1 => true | _, _ => false end.

  Definition model : history := {|
    transaction := name; predicate := unit; row := number; file := path;
    transactions := [a; b; c];
    writer i := match i with c => c_inserts | _ => true end;
    version := model_version;
    read i := match q, i with Snapshot, a => 2 | Snapshot, b | Committed, a => 1 | _, _ => 0 end;
    wrote i x :=
      match i, x with a, row_1 | b, row_2 => true | c, row_2 => c_inserts | _, _ => false end;
    created i x :=
      match q, i, x with
      | Snapshot, a, row_1 | (Snapshot | Rows | Born_once), b, row_2 => true
      | _, b, row_2 => inserts
      | _, c, row_2 => true
      | _, _, _ => false
      end;
    matches i _ x n :=
      match i, x with
      | a, _ | b, row_1 => live x n
      | b, row_2 => negb inserts && negb comes_and_goes && live x n
      | c, _ => false
      end;
    definition := model_definition;
    holds f x n :=
      match f, x with
      | file_1, row_1 | file_2, row_2 => live x n && negb (model_definition x)
      | _, _ => false
      end;
    read_file i f :=
      match q, i, f with
      | Read_files, a, file_2 => false
      | _, a, file_2 => negb comes_and_goes
      | _, _, _ => true
      end;
    removes i f :=
      match q, i, f with
      | (Snapshot | Metadata), a, _ => false
      | _, a, file_1 => true
      | (Put_if_absent | Read_files), b, file_2 => true
      | _, b, file_2 => comes_and_goes
      | _, _, _ => false
      end;
    adds_meets_reads i j :=
      match q, i, j with
      | Read_predicates, _, _ => false
      | Snapshot, a, b | Snapshot, b, a => true
      | _, b, a => inserts
      | _, c, a => c_inserts
      | _, _, _ => false
      end;
    metadata_clashes _ _ := false;
    Aborted i := match q, i with Committed, b => true | _, _ => false end;
    Blind i :=
      match q, i with (Metadata | Is_blind), b => true | _, c => c_inserts | _, _ => false end;
    NoData i := match q, i with Compactions, a => true | _, _ => false end;
    ChangesData _ := false;
    Empty _ := false;
    Meta i := match q, i with Definitions, b => true | _, _ => false end;
    Marked _ := false;
    Large _ := false;
    Backfill i := match q, i with Backfills, b => true | _, _ => false end;
    Default _ := false
  |}.
End Model.

Ltac open_claim :=
  unfold claim, snapshot, put_if_absent, committed, definitions, metadata, read_files,
    read_predicates, files, rows, read_before_written, born_once, blind, compactions, backfills,
    reads_and_writes_none, tracked, creates, writes, unseen, log.

Lemma others_hold q other : other <> q -> claim other (model q).
Proof.
  intro ne; destruct q, other; try (exfalso; now apply ne); clear ne; open_claim; decide_table.
Qed.

Definition of_theorem_5 (q : premise) : bool :=
  match q with
  | Metadata | Read_before_written | Born_once | Is_blind => false
  | _ => true
  end.
Definition of_theorem_6 (q : premise) : bool := match q with Committed => false | _ => true end.

Ltac open_check :=
  unfold overtaken, metadata_changed, added, deleted_read, deleted_deleted, removes_meets_reads,
    removes_meets_removes, theorem_5.Unlogged, theorem_5.Downgraded, theorem_6.Unlogged,
    theorem_6.Downgraded, unseen, log.

Lemma admitted_at_serializable q : of_theorem_5 q -> theorem_5.delta_serializable (model q).
Proof. destruct q; intro u; try discriminate u; split; open_check; decide_table. Qed.

Lemma admitted_at_write_serializable q :
  of_theorem_6 q -> theorem_6.delta_write_serializable (model q).
Proof. destruct q; intro u; try discriminate u; split; open_check; decide_table. Qed.

Lemma b_follows_a q : of_theorem_6 q -> writers_depend (model q) a b.
Proof.
  destruct q; intro u; try discriminate u; split; try easy; split; try easy.
  1: left; split; [easy | exists row_1, tt; left].
  2-13: right; right; split; [easy | exists row_2, tt].
  all: unfold changed, first, last, writes; decide_table.
Qed.

Lemma a_follows_b q : of_theorem_6 q -> writers_depend (model q) b a.
Proof.
  destruct q; intro u; try discriminate u; split; try easy; split; try easy.
  1: left; split; [easy | exists row_2, tt].
  2-13: right; right; split; [easy | exists row_1, tt].
  all: unfold changed, first, last, writes; decide_table.
Qed.

Lemma models_have_cycles q : of_theorem_6 q -> clos_trans _ (writers_depend (model q)) a a.
Proof.
  intro u; apply t_trans with b; apply t_step; [now apply b_follows_a | now apply a_follows_b].
Qed.

Lemma models_have_no_bridge q i j k : ~ theorem_6.bridge (model q) i j k.
Proof.
  intros [blind_i [_ [_ [_ [_ [seen _]]]]]].
  destruct q, i, k; cbn in blind_i, seen; discriminate + lia.
Qed.

Lemma committed_model_reads_from_aborted : ~ log_serializable (model Committed).
Proof.
  intros [none _]; apply (none b a); [easy | split; [easy | exists row_2, tt]].
  unfold last, changed, writes; decide_table.
Qed.

Theorem premises_of_theorem_5_are_needed q : of_theorem_5 q -> exists h,
  (forall other, other <> q -> claim other h) /\
  theorem_5.delta_serializable h /\ ~ log_serializable h.
Proof.
  intro u; exists (model q); split; [exact (others_hold q) |].
  split; [now apply admitted_at_serializable |].
  destruct (of_theorem_6 q) eqn:six.
  - exact (proj2 (writers_in_a_cycle (model q) a (models_have_cycles q six))).
  - destruct q; try discriminate six; exact committed_model_reads_from_aborted.
Qed.

Theorem premises_of_theorem_6_are_needed q : of_theorem_6 q -> exists h,
  finite h /\ (forall other, other <> q -> claim other h) /\
  theorem_6.delta_write_serializable h /\
  (exists i, clos_trans _ (writers_depend h) i i) /\
  (forall i j k, ~ theorem_6.bridge h i j k).
Proof.
  intro u; exists (model q); split; [| split; [| split; [| split]]].
  - intros [| |]; cbn; auto.
  - exact (others_hold q).
  - now apply admitted_at_write_serializable.
  - exists a; now apply models_have_cycles.
  - exact (models_have_no_bridge q).
Qed.

(* All premises hold in a history that the check at WriteSerializable admits, and whose writers have
   a cycle: c appends row 1 blindly (version 1); b, which has seen it, looks for row 2 (version 2);
   a, which has seen neither, looks for row 1 and inserts row 2 (version 3). *)
Definition hole : history := {|
  transaction := name; predicate := unit; row := number; file := path;
  transactions := [a; b; c];
  writer _ := true;
  version i := match i with c => 1 | b => 2 | a => 3 end;
  read i := match i with b => 1 | _ => 0 end;
  wrote i x := match i, x with c, row_1 | a, row_2 => true | _, _ => false end;
  created i x := match i, x with c, row_1 | a, row_2 => true | _, _ => false end;
  matches i _ x n :=
    match i, x with
    | a, row_1 | b, row_1 => 1 <=? n
    | b, row_2 => 3 <=? n
    | _, _ => false
    end;
  definition _ := false;
  holds f x n :=
    match f, x with file_1, row_1 => 1 <=? n | file_2, row_2 => 3 <=? n | _, _ => false end;
  read_file i f := match i, f with b, file_1 => true | _, _ => false end;
  removes _ _ := false;
  adds_meets_reads i j := match i, j with c, a | c, b | a, b => true | _, _ => false end;
  metadata_clashes _ _ := false;
  Aborted _ := false;
  Blind i := match i with c => true | _ => false end;
  NoData _ := false; ChangesData _ := true; Empty _ := false; Meta _ := false; Marked _ := false;
  Large _ := false; Backfill _ := false; Default _ := false
|}.

Theorem premises_hold_together :
  finite hole /\ (forall q, claim q hole) /\ theorem_6.delta_write_serializable hole /\
  exists i, clos_trans _ (writers_depend hole) i i.
Proof.
  split; [intros [| |]; cbn; auto |].
  split; [intros []; open_claim; decide_table |].
  split; [split; open_check; decide_table | exists a].
  apply t_trans with c; [| apply t_trans with b]; apply t_step; (split; [easy | split; [| easy]]).
  - right; right; split; [easy | exists row_1, tt]; unfold changed, first, writes; decide_table.
  - left; split; [easy | exists row_1, tt]; unfold changed, last, writes; decide_table.
  - right; right; split; [easy | exists row_2, tt]; unfold changed, first, writes; decide_table.
Qed.

Print Assumptions premises_of_theorem_5_are_needed.
Print Assumptions premises_of_theorem_6_are_needed.
Print Assumptions premises_hold_together.
