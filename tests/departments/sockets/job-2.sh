# jobgen slurm --site ./site.toml --nodes 2 --gpus-per-node l4:4 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=l4:4
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=main
# jobgen: note: the launcher is srun, that of site site
