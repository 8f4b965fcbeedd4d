# jobgen slurm --site ./site.toml --nodes 2 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=10
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --constraint=v100
#SBATCH --partition=gpu
# jobgen: note: queue gpu of features: the job gets 3 nodes with 4 accelerators, 40 cores, 190000M, features v100,skylake,ib; --gpus-per-node TYPE:N or --constraint chooses others: 2 nodes with 4 accelerators, 64 cores, 500000M, features a100,milan,ib; 1 node with 2 accelerators, 32 cores, 125G, features rtx8000
# jobgen: note: the launcher is srun, that of site site
