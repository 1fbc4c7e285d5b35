-- A journal of format 1, as `sqlite3 FILE .dump` has it; of the reward server 0.1.0.
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN TRANSACTION;
CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, time_s REAL NOT NULL, request_id TEXT NOT NULL, item_id TEXT NOT NULL, group_id TEXT NOT NULL, task TEXT NOT NULL, verifier TEXT NOT NULL, version TEXT NOT NULL, verdict TEXT, reward REAL, fault TEXT, explanation TEXT NOT NULL, answer TEXT, components TEXT NOT NULL, spans TEXT NOT NULL, suspicions TEXT NOT NULL, queue_s REAL NOT NULL, execution_s REAL NOT NULL, from_cache INTEGER NOT NULL, prompt TEXT NOT NULL, response TEXT, is_dialogue INTEGER NOT NULL, response_chars INTEGER NOT NULL, reference TEXT, item_key BLOB, CHECK ((verdict IS NULL) <> (fault IS NULL)), CHECK ((verdict IS NULL) = (reward IS NULL)));
INSERT INTO "entries" VALUES(1,1.7954933388735129833e+09,'','right','','','math','4','correct',1.0,NULL,'',NULL,'[["match",1.0,1.0]]','[]','[]',5.97899997956119477748e-06,0.0,0,'[["user","What is 6 * 7?"]]','\boxed{42}',0,10,'42',X'83F0EBD630986ED63C2DC63CDBB61FA7');
INSERT INTO "entries" VALUES(2,1.7954933388735129833e+09,'','wrong','','','exact','1','incorrect',0.0,NULL,'',NULL,'[["match",0.0,1.0]]','[]','[]',3.21500010613817721605e-06,0.0,0,'[["user","What is 6 * 7?"]]','41',0,2,'42',X'BCB1B43027FDED4A0ACC76C977FBC8CA');
INSERT INTO "entries" VALUES(3,1.7954933388735129833e+09,'','late','','','exact','1',NULL,NULL,'ITEM_TIMEOUT','it took too long',NULL,'[]','[]','[]',3.39500002155546098947e-06,0.0,0,'[["user","What is 6 * 7?"]]','42',0,2,'42',X'BB67A271194AA1B31B90DC828376E5CC');
INSERT INTO "entries" VALUES(4,1.79549333887353420257e+09,'','talk','','','exact','1','partial',0.5,NULL,'half of it','42','[["match",0.5,1.0]]','[[0,2,1.0,"step",0],[2,5,0.0,"step",0]]','["several-boxed-answers"]',3.27679999827523715794e-05,0.0,0,'[["user","What is 6 * 7?"]]','[["assistant","41",true],["user","sure?",false],["assistant","42",true]]',1,9,'42',X'7510AFA0711F932C1C8B4A5B82EAC6A7');
INSERT INTO "entries" VALUES(5,1.79549333887353420257e+09,'','several','','','exact','1','correct',1.0,NULL,'',NULL,'[["match",1.0,1.0]]','[]','[]',8.22200013317342381924e-06,0.0,0,'[["user","What is 6 * 7?"]]','42',0,2,'["42","forty-two"]',X'20B89C63055CFAD6D3822957891CE66A');
INSERT INTO "entries" VALUES(6,1.79549333887353420257e+09,'','data','','','math','4','correct',1.0,NULL,'',NULL,'[["match",1.0,1.0]]','[]','[]',1.226899985340423882e-05,0.0,0,'[["user","What is 6 * 7?"]]','42',0,2,'{"x":1}',X'97186DC9D5DA485E6FA1DAC6697C9845');
INSERT INTO "entries" VALUES(7,1.79549333887353420257e+09,'','unknown','','','','',NULL,NULL,'UNKNOWN_VERIFIER','no such',NULL,'[]','[]','[]',1.23199993140588048845e-06,0.0,0,'[["user","What is 6 * 7?"]]','42',0,2,'42',X'BB67A271194AA1B31B90DC828376E5CC');
INSERT INTO "entries" VALUES(8,1.79549333887353420257e+09,'','long','','','exact','1','correct',1.0,NULL,'',NULL,'[["match",1.0,1.0]]','[]','[]',7.1609999849897576496e-06,0.0,0,'[["user","What is 6 * 7?"]]','xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',0,40000,'42',X'B82953AEE904151736A2423A344D5C37');
CREATE TABLE totals (dropped INTEGER NOT NULL, expired INTEGER NOT NULL);
INSERT INTO "totals" VALUES(0,0);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('entries',8);
COMMIT;
PRAGMA application_id = 1095979865;
PRAGMA user_version = 1;
