(* No premise of Theorem 18 can be left out. docs/semantics.md, section 3.4.

   For each premise, [model] is a history that violates it, satisfies all others, is admitted by the
   repaired rule, and is not log-serializable. (Histories that satisfy all premises: [two_merges].)

   Where nothing else is said, a has version 2, b has version 1, and both read version 0. a reads
   row 2 and deletes row 1; b reads row 1 and deletes row 2. So a -rw-> b and b -rw-> a. Both rows
   are in one file, to which both give a vector. *)

From Coq Require Import Arith Lia List Bool Relations.
From Isolitmus Require Import tables theorem_5 row_level_repair.
Import ListNotations.

Inductive premise :=
  | Snapshot | Put_if_absent | Committed | Definitions | Read_files | Rows | Compactions | Backfills
  | Rows_stay_in_paths | New_rows_in_new_files | Statistics | Recorded_reads.

Definition claim (q : premise) (h : history) (v : vectors h) : Prop :=
  match q with
  | Snapshot => snapshot h
  | Put_if_absent => put_if_absent h
  | Committed => committed h
  | Definitions => definitions h
  | Read_files => read_files h
  | Rows => rows h
  | Compactions => compactions h
  | Backfills => backfills h
  | Rows_stay_in_paths => rows_stay_in_paths h v
  | New_rows_in_new_files => new_rows_in_new_files h v
  | Statistics => statistics h v
  | Recorded_reads => recorded_reads h v
  end.

Inductive path := file_1 | file_2.

Section Model.
  Variable q : premise.

  (* b inserts row 2 into a file that it adds; otherwise b deletes it. *)
  Definition inserts : bool :=
    match q with
    | Committed | Backfills | New_rows_in_new_files | Statistics => true
    | _ => false
    end.

  Definition model_version (i : name) : nat :=
    match q, i with
    | Snapshot, b | Rows, b => 2
    | Snapshot, a | Put_if_absent, _ => 1
    | Rows, a => 3
    | _, a => 2
    | _, b => 1
    end.

  (* Where row 1 and row 2 are rows of the table, and match the reads. *)
  Definition there (x : number) (n : nat) : bool :=
    match q, x with
    | Snapshot, row_1 => 1 <=? n
    | Snapshot, row_2 => 2 <=? n
    | _, row_1 => n <? model_version a
    | Rows, row_2 => n =? 1
    | _, row_2 => if inserts then 1 <=? n else n <? model_version b
    end.

  Definition home (x : number) : path :=
    match q, x with
    | _, row_1 => file_1
    | (Snapshot | Read_files), row_2 => file_2
    | _, row_2 => if inserts then file_2 else file_1
    end.
  Definition holds_row (f : path) (x : number) : bool :=
    match f, home x, q, x with
    | _, _, (Definitions | Rows), row_2 => false
    | file_1, file_1, _, _ | file_2, file_2, _, _ => true
    | _, _, _, _ => false
    end.

  Definition model_removes (i : name) (f : path) : bool :=
    match q, i, f with
    | Snapshot, _, _ | (Definitions | Rows), b, _ => false
    | Read_files, b, file_2 => true
    | Read_files, b, file_1 => false
    | _, a, file_1 => true
    | _, b, file_1 => negb inserts
    | _, _, file_2 => false
    end.

  Definition model : history := {|
    transaction := name; predicate := unit; row := number; file := path;
    transactions := [a; b];
    writer _ := true;
    version := model_version;
    read i := match q, i with Snapshot, a => 2 | Snapshot, b | Committed, a => 1 | _, _ => 0 end;
    wrote := deletes;
    created i _ := match q, i with Snapshot, _ => true | _, b => inserts | _, _ => false end;
    matches i _ x n := match i, x with a, row_2 | b, row_1 => there x n | _, _ => false end;
    definition x := match q, x with Definitions, row_2 => true | _, _ => false end;
    holds f x n := holds_row f x && there x n;
    read_file i f := match q, i, f with Read_files, a, file_2 => false | _, _, _ => true end;
    removes := model_removes;
    adds_meets_reads _ _ := false;
    metadata_clashes _ _ := false;
    Aborted i := match q, i with Committed, b => true | _, _ => false end;
    Blind _ := false;
    NoData i := match q, i with Compactions, a => true | _, _ => false end;
    ChangesData _ := true; Empty _ := false; Meta _ := false; Marked _ := false; Large _ := false;
    Backfill i := match q, i with Backfills, b => true | _, _ => false end;
    Default _ := false
  |}.

  Definition model_vectors : vectors model := Build_vectors model
    (* gives_vector *)
    (fun i f => model_removes i f && match f with file_1 => true | file_2 => false end)
    (* marks *)
    (fun i f x => model_removes i f && deletes i x && holds_row f x &&
       match q, i with Rows_stay_in_paths, b => false | _, _ => true end)
    (* adds *)
    (fun i f => model_removes i f && match f with file_1 => true | file_2 => false end ||
       match q, i, f with
       | Snapshot, _, _ => true
       | New_rows_in_new_files, _, _ => false
       | _, b, file_2 => inserts
       | _, _, _ => false
       end)
    (* could_match *)
    (fun i f => match q, i, f with Statistics, a, file_2 => false | _, _, _ => true end)
    (* records *)
    (fun i f x => match q, i, x with Recorded_reads, a, row_2 => false | _, _, _ => true end).
End Model.

Lemma others_hold q other : other <> q -> claim other (model q) (model_vectors q).
Proof.
  intro ne; destruct q, other; try (exfalso; now apply ne); clear ne; unfold claim; open_all;
    decide_table.
Qed.

Lemma admitted q : row_level_rule_repaired (model q) (model_vectors q).
Proof.
  destruct q; (split; [split |]); open_all; unfold model_removes; decide_table.
Qed.

Lemma not_in_log_order q : ~ log_serializable (model q).
Proof.
  assert (from_cycle : writers_depend (model q) a b -> writers_depend (model q) b a ->
    ~ log_serializable (model q)).
  { intros ab ba; apply (writers_in_a_cycle (model q) a).
    now apply t_trans with b; apply t_step. }
  destruct q.
  3: { clear from_cycle; intros [none _].
       apply (none b a); [easy | split; [easy | exists row_2, tt]].
       unfold last, changed, writes; decide_table. }
  1: apply from_cycle; (split; [easy | split; [left | easy]]);
    (split; [easy |]); [exists row_1, tt | exists row_2, tt].
  3-12: apply from_cycle; (split; [easy | split; [right; right | easy]]);
    (split; [easy |]); [exists row_2, tt | exists row_1, tt].
  all: unfold first, last, changed, writes; decide_table.
Qed.

Theorem premises_of_row_level_repair_are_needed q : exists h v,
  (forall other, other <> q -> claim other h v) /\
  row_level_rule_repaired h v /\ ~ log_serializable h.
Proof.
  exists (model q), (model_vectors q).
  split; [exact (others_hold q) | split; [exact (admitted q) | exact (not_in_log_order q)]].
Qed.

Print Assumptions premises_of_row_level_repair_are_needed.
